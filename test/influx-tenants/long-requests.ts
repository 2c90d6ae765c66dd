// Requests that go on for as long as they are let.

import { request } from 'node:http';
import type { TenantServer } from './tenant-server.ts';

/** Runs until it is killed. */
const endless =
  'SELECT mean(v) FROM m WHERE time >= 0 AND time < 36500d GROUP BY time(1ms) fill(0)';

/** A query that goes on for long; resolves to how it ended. */
export function longQuery(server: TenantServer, who: string): Promise<string> {
  return server.query(who, endless, { chunked: 'true' }).then(
    ({ status: code, text }) => `${code} ${text.slice(-300)}`,
    () => 'cut off',
  );
}

/** A write whose body comes bit by bit, for as long as it is let. */
export function longWrite(
  server: TenantServer,
  who: string,
): { ended: Promise<string>; stop: () => void } {
  const sent = request(`${server.url}/write?db=d`, {
    agent: false,
    method: 'POST',
    headers: {
      Authorization: `Basic ${Buffer.from(who).toString('base64')}`,
      'Content-Encoding': 'identity',
    },
  });
  const ended = new Promise<string>((resolve) => {
    sent.on('response', (response) => resolve(String(response.statusCode)));
    sent.on('error', () => resolve('cut off'));
  });
  let i = 0;
  const timer = setInterval(() => sent.write(`m v=${i} ${++i}\n`.repeat(100)), 5);
  void ended.then(() => clearInterval(timer));
  return {
    ended,
    stop: () => {
      clearInterval(timer);
      sent.end();
    },
  };
}

// Calls of the admin API of a server that a bench has started.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Running } from './processes.ts';

/** The Redis port answers a little before the admin port does. */
const endpointWithinMs = 10_000;

/** Throws unless it is done; `path` is that below `/v1`. */
export async function adminCall(
  { directory }: Running,
  method: string,
  path: string,
  body: object,
): Promise<void> {
  const deadline = performance.now() + endpointWithinMs;
  while (!existsSync(join(directory, 'admin-endpoint')) && performance.now() < deadline) {
    await sleep(20);
  }
  const read = (name: string): string => readFileSync(join(directory, name), 'utf8').trim();
  const answer = await fetch(`${read('admin-endpoint')}/v1${path}`, {
    method,
    headers: {
      authorization: `Bearer ${read('admin-token')}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`${method} ${path}: ${await answer.text()}`);
}

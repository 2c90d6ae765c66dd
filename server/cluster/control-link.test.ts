// Questions over real links: many at once, large ones, links that are lost, and peers that say what makes no sense.

import { afterEach, expect, test } from 'vitest';
import type { LinkContext } from '../../cluster-links/cluster-link.ts';
import { ClusterListener } from '../../cluster-links/cluster-listener.ts';
import { dialLink } from '../../cluster-links/dial.ts';
import { TcpProxy } from '../../test/metadata/tcp-proxy.ts';
import { writeFrame } from '../../universal-row/protocol/frames.ts';
import { WireWriter } from '../../universal-row/protocol/wire.ts';
import { ControlClient } from './control-client.ts';
import { controlPurpose, maxBodyBytes } from './control-frames.ts';
import { HandlerTable } from './control-handlers.ts';

const host = '127.0.0.1';
const contextOf = (node: number): LinkContext => ({
  identity: { cluster: '1', node: String(node), incarnation: 1, level: 1 },
  secret: Buffer.from('a secret of this test only'),
  silenceMs: 500,
});

const opened: { close(): unknown }[] = [];
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.close();
});

async function serving(port = 0): Promise<{ handlers: HandlerTable; listener: ClusterListener }> {
  const handlers = new HandlerTable();
  const listener = new ClusterListener(contextOf(2), () => undefined);
  listener.serve(controlPurpose, {
    open: (link) => handlers.serve(link, { node: Number(link.peer.node), incarnation: 1 }),
  });
  await listener.listen(host, port);
  opened.push(listener);
  return { handlers, listener };
}

function clientTo(port: () => number): ControlClient {
  const client = new ControlClient({
    context: contextOf(1),
    purpose: controlPurpose,
    addressOf: (node) => (node === 2 ? { host, port: port() } : undefined),
  });
  opened.push(client);
  return client;
}

test('answers go to their questions, whatever their order and size', async () => {
  const { handlers, listener } = await serving();
  handlers.onBytes('echo', async (body) => {
    await new Promise((resolve) => setTimeout(resolve, body[0]! % 20));
    return body;
  });
  handlers.onBytes('many', (body) => Buffer.alloc(Number(body.toString())));
  const client = clientTo(() => listener.port);
  const bodies = Array.from({ length: 200 }, (_, i) => Buffer.alloc(1 + i * i, i));
  const answers = await Promise.all(bodies.map((body) => client.ask(2, 'echo', body, 10_000)));
  expect(answers.every((answer, i) => answer.equals(bodies[i]!))).toBe(true);
  const large = Buffer.alloc(maxBodyBytes, 'x');
  expect((await client.ask(2, 'echo', large, 20_000)).equals(large)).toBe(true);
  await expect(client.ask(2, 'echo', Buffer.alloc(maxBodyBytes + 1), 10_000)).rejects.toMatchObject(
    { outcome: 'unreachable' },
  );
  await expect(
    client.ask(2, 'many', Buffer.from(String(maxBodyBytes + 1)), 10_000),
  ).rejects.toMatchObject({ outcome: 'refused', code: 'TOO_LARGE' });
});

test('more than a bound is refused, and the rest is answered', async () => {
  const { handlers, listener } = await serving();
  let go = (): void => undefined;
  const gate = new Promise<void>((resolve) => (go = resolve));
  handlers.onBytes('wait', async () => {
    await gate;
    return Buffer.from('done');
  });
  const client = clientTo(() => listener.port);
  const asked = Array.from({ length: 1500 }, () =>
    client
      .ask(2, 'wait', Buffer.alloc(0), 10_000)
      .then(String, ({ outcome, code }: { outcome: string; code?: string }) => code ?? outcome),
  );
  // Refused questions are answered before the gate opens.
  await Promise.all(asked.slice(256));
  go();
  const counts = new Map<string, number>();
  for (const one of await Promise.all(asked)) counts.set(one, (counts.get(one) ?? 0) + 1);
  expect(Object.fromEntries(counts)).toEqual({ done: 256, BUSY: 744, unreachable: 500 });
  expect(String(await client.ask(2, 'wait', Buffer.alloc(0), 10_000))).toBe('done');
});

test('a question without an answer ends, and the next one finds a new link', async () => {
  const { handlers, listener } = await serving();
  handlers.onBytes('echo', (body) => body);
  const proxy = await TcpProxy.start(listener.port);
  opened.push(proxy);
  let { port } = proxy;
  const client = clientTo(() => port);
  const ask = (ms = 5000): Promise<Buffer> => client.ask(2, 'echo', Buffer.from('x'), ms);
  expect(String(await ask())).toBe('x');
  proxy.stall();
  await expect(ask()).rejects.toMatchObject({ outcome: 'unknown' });
  ({ port } = listener);
  expect(String(await ask())).toBe('x');
  await listener.close();
  await expect.poll(() => ask(1000).catch(({ outcome }) => outcome as string)).toBe('unreachable');
  const again = await serving(port);
  again.handlers.onBytes('echo', () => Buffer.from('again'));
  await expect.poll(() => ask(1000).then(String, () => '')).toBe('again');
});

test('what is no question ends the link that it came on, and no other', async () => {
  const { handlers, listener } = await serving();
  handlers.onBytes('echo', (body) => body);
  const client = clientTo(() => listener.port);
  await client.ask(2, 'echo', Buffer.alloc(0), 5000);
  const frames: [type: number, payload: Buffer][] = [
    [81, Buffer.from('an answer')],
    [90, Buffer.alloc(0)],
    [80, Buffer.alloc(0)],
    [80, Buffer.of(200, 1, 65)],
  ];
  for (const [type, payload] of frames) {
    const end = await new Promise<string>((resolve) => {
      const dialled = dialLink(
        contextOf(3),
        { host, port: listener.port, purpose: controlPurpose },
        {
          open: (link) => {
            const writer = new WireWriter(256);
            writeFrame(writer, type, 1, payload);
            queueMicrotask(() => link.send(writer.view()));
            return {
              frame: () => resolve('a frame'),
              drained: () => undefined,
              readEnd: () => undefined,
              closed: () => resolve('closed'),
            };
          },
          failed: () => resolve('failed'),
        },
      );
      opened.push(dialled);
    });
    expect(end).toBe('closed');
  }
  expect(String(await client.ask(2, 'echo', Buffer.from('still'), 5000))).toBe('still');
});

import { createServer } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { until } from '../test/support/until.ts';
import { endFrame, beginFrame } from '../universal-row/protocol/frames.ts';
import { WireWriter } from '../universal-row/protocol/wire.ts';
import type { ClusterLink } from './cluster-link.ts';
import { ClusterListener } from './cluster-listener.ts';
import { LastingLink } from './lasting-link.ts';

const secret = Buffer.from('the secret of the test');
const identityOf = (node: string) => ({ cluster: 'test', node, incarnation: 1, level: 1 });

let events: string[];
let link: LastingLink;
const listeners: ClusterListener[] = [];
let accepted: ClusterLink[];

/** Its links say at once what the node is called. */
async function listen(node: string, port = 0): Promise<ClusterListener> {
  const listener = new ClusterListener({ identity: identityOf(node), secret }, () => {});
  listener.serve('test', {
    open: (one) => {
      accepted.push(one);
      const frame = new WireWriter(64);
      const at = beginFrame(frame, 33, 7);
      frame.string(node);
      endFrame(frame, at);
      queueMicrotask(() => one.send(frame.view()));
      return { frame: () => {}, drained: () => {}, readEnd: () => {}, closed: () => {} };
    },
  });
  await listener.listen('127.0.0.1', port);
  listeners.push(listener);
  return listener;
}

function newLink(port: number, node?: string): LastingLink {
  const one: LastingLink = new LastingLink(
    {
      ...{ host: '127.0.0.1', port, node },
      context: { identity: identityOf('client'), secret },
      report: (level, message) => events.push(`${level}: ${message.replace(/:\d+ .*/, '')}`),
    },
    {
      purpose: 'test',
      peer: 'the test',
      opened: () => events.push('opened'),
      frame: (_type, stream, buf, start, end) => {
        events.push(`${stream} ${buf.toString('utf8', start + 1, end)}`);
        one.up();
      },
      ended: () => events.push('ended'),
    },
  );
  return one;
}

beforeEach(() => {
  events = [];
  accepted = [];
});
afterEach(async () => {
  link.close();
  for (const listener of listeners.splice(0)) await listener.close();
});

test('it is up once its user says so, and is made again when it ends', async () => {
  const { port } = await listen('a');
  link = newLink(port);
  expect(link.isUp).toBe(false);
  await link.start();
  expect(link.isUp).toBe(true);
  accepted[0]!.close();
  await until(() => !link.isUp);
  await link.ready;
  const once = ['opened', '7 a'];
  expect(events).toEqual([...once, 'warn: the link to the test at 127.0.0.1', 'ended', ...once]);
});

test('attempts go on while nothing listens, and tell nothing', async () => {
  const free = createServer();
  await new Promise<void>((resolve) => free.listen(0, '127.0.0.1', resolve));
  const { port } = free.address() as { port: number };
  await new Promise((resolve) => free.close(resolve));
  link = newLink(port);
  const up = link.start();
  let drained = 0;
  link.whenDrained(() => drained++);
  // What waits for room is told when an attempt fails: there is nothing to wait for.
  await until(() => drained === 1);
  expect(events).toEqual([]);
  await listen('a', port);
  await up;
  expect(events).toEqual(['opened', '7 a']);
});

test('it goes where the node is found, and to no other node', async () => {
  const [first, second] = [await listen('a'), await listen('b')];
  link = newLink(first.port, 'b');
  const up = link.start();
  link.setPlace({ host: '127.0.0.1', port: second.port });
  await up;
  expect(events).toEqual(['opened', '7 b']);
  link.setPlace({ host: '127.0.0.1', port: second.port });
  expect(link.isUp).toBe(true);
});

test('a closed one is not made again', async () => {
  const { port } = await listen('a');
  link = newLink(port);
  await link.start();
  link.close();
  await until(() => !link.isUp);
  expect(events).toEqual(['opened', '7 a', 'ended']);
  expect(link.link).toBeUndefined();
});

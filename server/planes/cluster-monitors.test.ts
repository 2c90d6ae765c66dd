import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { frameHeaderBytes } from '../../universal-row/protocol/frames.ts';
import { WireReader } from '../../universal-row/protocol/wire.ts';
import { ClusterMonitors } from './cluster-monitors.ts';

/** Two nodes: the second one's lines arrive at the first. */
let watcher: ClusterMonitors;
let source: ClusterMonitors;
let shown: string[];
let isFull: boolean;
let sent: number;
let isWatched: boolean;
let clock: number;

beforeEach(() => {
  shown = [];
  isFull = false;
  sent = 0;
  isWatched = false;
  clock = 0;
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  vi.spyOn(performance, 'now').mockImplementation(() => clock);
  watcher = new ClusterMonitors({
    node: 1,
    send: () => false,
    tell: async (tenants) => source.watchedBy(1, tenants),
    heard: (tenant, lines) => shown.push(`${tenant} ${lines}`),
    watched: () => {},
  });
  source = new ClusterMonitors({
    node: 2,
    send: (node, frame) => {
      expect(node).toBe(1);
      sent++;
      if (isFull) return false;
      watcher.frame(new WireReader(frame.subarray(frameHeaderBytes)));
      return true;
    },
    tell: async () => {},
    heard: () => {},
    watched: (is) => (isWatched = is),
  });
});

afterEach(() => {
  watcher.close();
  source.close();
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const round = (): Promise<unknown> => new Promise(setImmediate);

test('lines of a round come together, those of watched tenants', async () => {
  watcher.watch([0, 7]);
  expect(isWatched).toBe(true);
  source.show(7, '+a\r\n');
  source.show(3, '+other\r\n');
  source.show(7, '+b\r\n');
  await round();
  expect(shown).toEqual(['7 +a\r\n+b\r\n']);
  watcher.watch([]);
  expect(isWatched).toBe(false);
  source.show(7, '+c\r\n');
  await round();
  expect(shown).toHaveLength(1);
});

test('what there is no room for is left out, and counted in a line', async () => {
  watcher.watch([7]);
  isFull = true;
  for (let n = 0; n < 3; n++) source.show(7, '+lost\r\n');
  await round();
  source.show(7, '+lost, too\r\n');
  await round();
  expect([sent, shown, source.dropped]).toEqual([2, [], 4]);
  isFull = false;
  source.show(7, '+there\r\n');
  await round();
  source.show(7, '+next\r\n');
  await round();
  expect(shown).toEqual([
    expect.stringMatching(
      /^7 \+\d+\.\d{6} \[0 node:2\] "4 commands are not shown"\r\n\+there\r\n$/,
    ),
    '7 +next\r\n',
  ]);
});

test('a round has a bound', async () => {
  watcher.watch([7]);
  const line = `+${'x'.repeat(8000)}\r\n`;
  for (let n = 0; n < 300; n++) source.show(7, line);
  await round();
  const kept = (shown[0]!.length - 2) / line.length;
  expect(kept).toBe(131);
  expect(source.dropped).toBe(300 - kept);
});

test('a node that says no more that it watches is not told for longer than some seconds', async () => {
  watcher.watch([7]);
  clock += 4000;
  vi.advanceTimersByTime(1000);
  await Promise.resolve();
  clock += 4000;
  source.show(7, '+told\r\n');
  await round();
  expect(shown).toHaveLength(1);
  watcher.close();
  clock += 6000;
  source.show(7, '+gone\r\n');
  await round();
  expect(shown).toHaveLength(1);
  expect(isWatched).toBe(false);
});

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { defaultConfig } from '../settings/schema.ts';
import { PlaneHost, type PlaneListener } from './plane-host.ts';

// A plane that does what the table number of a rowCount call says.
const script = `
import { once } from 'node:events';
import { parentPort } from 'node:worker_threads';
const say = (message) => parentPort.postMessage(message);
const [{ config }] = await once(parentPort, 'message');
parentPort.on('message', ({ id, call, argument, answers, value, error }) => {
  if (answers !== undefined) return say({ type: 'log', level: 'info', msg: value ?? error });
  if (call === 'stop') say({ type: 'answer', id });
  else if (call !== 'rowCount') say({ type: 'failed', id, error: 'what is ' + call + '?' });
  else if (argument === 1) return;
  else if (argument === 50) say({ type: 'asks', id: 7, call: 'dropUser', argument: { name: 'ann' } });
  else if (argument === 2) throw new Error('it broke');
  else if (argument === 3) process.exit(9);
  else say({ type: 'answer', id, value: argument * 10 });
});
const databases = config['redis.databases'];
if (databases === 1) say({ type: 'fatal', message: 'one is too few' });
else {
  say({ type: 'log', level: 'info', msg: 'here', fields: { databases } });
  say({ type: 'configChanged', key: 'redis.timeout', value: 5 });
  say({ type: 'ready', endpoints: [{ name: 'redis', url: 'redis://x:1' }] });
}
`;

let directory: string;
let url: URL;
let plane: PlaneHost;
let listener: PlaneListener;
let heard: unknown[];
let died: Promise<string>;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'polyrow-plane-'));
  const file = join(directory, 'plane.mjs');
  writeFileSync(file, script);
  url = pathToFileURL(file);
});
afterAll(() => rmSync(directory, { recursive: true }));

beforeEach(() => {
  heard = [];
  died = new Promise((resolve) => {
    plane = new PlaneHost('redis', url);
    listener = {
      configChanged: (change) => heard.push(change),
      log: (level, message, fields) => heard.push([level, message, fields]),
      died: resolve,
    };
  });
});
afterEach(() => plane.terminate());

const nothing = {
  tables: [],
  seriesTables: [],
  defaultModel: 'memory',
  tenancy: {
    whole: true,
    revision: 0,
    tenants: [],
    users: [],
    tokens: [],
    gone: { tenants: [], users: [], tokens: [] },
  },
} as const;

const start = (databases = 16) =>
  plane.start(
    { ...nothing, config: { ...defaultConfig(), 'redis.databases': databases } },
    listener,
  );

test('a plane is started with its configuration, heard, asked and stopped', async () => {
  expect(plane.isUp).toBe(false);
  expect(await start()).toEqual([{ name: 'redis', url: 'redis://x:1' }]);
  expect(plane.isUp).toBe(true);
  expect(heard).toEqual([['info', 'here', { databases: 16 }], { key: 'redis.timeout', value: 5 }]);
  const answers = [4, 5, 6].map((table) => plane.call('rowCount', table, 1000));
  expect(await Promise.all(answers)).toEqual([40, 50, 60]);
  await plane.stop(1000);
  expect(plane.isUp).toBe(false);
  await expect(plane.call('rowCount', 4, 1000)).rejects.toThrow('the redis plane is not up');
});

test('an error of a call is its caller’s', async () => {
  await start();
  await expect(plane.call('metrics', undefined, 1000)).rejects.toThrow('what is metrics?');
  expect(await plane.call('rowCount', 4, 1000)).toBe(40);
});

test('a call that is not answered ends by its time limit', async () => {
  await start();
  await expect(plane.call('rowCount', 1, 50)).rejects.toThrow(
    'the redis plane did not answer rowCount within 50 ms',
  );
});

test('a plane that breaks fails the calls under way, and is reported with its reason', async () => {
  await start();
  const waiting = plane.call('rowCount', 1, 10_000);
  const breaking = plane.call('rowCount', 2, 10_000);
  await expect(waiting).rejects.toThrow('the redis plane is gone: Error: it broke');
  await expect(breaking).rejects.toThrow('gone');
  expect(await died).toContain('it broke');
  expect(plane.isUp).toBe(false);
});

test('a plane that exits is reported too', async () => {
  await start();
  await expect(plane.call('rowCount', 3, 10_000)).rejects.toThrow('exited with code 9');
  expect(await died).toBe('exited with code 9');
});

test('a plane that cannot start says why', async () => {
  await expect(start(1)).rejects.toThrow('one is too few');
});

test('a plane loads before it is given its data', async () => {
  plane.load();
  expect(await start()).toEqual([{ name: 'redis', url: 'redis://x:1' }]);
});

test('a plane asks, and is answered', async () => {
  await start();
  listener.control = {
    setUser: () => {
      throw new Error('not here');
    },
    dropUser: async ({ name }) => {
      if (name !== 'ann') throw new Error(name);
    },
    commitPartitions: () => {
      throw new Error('not here');
    },
    queries: () => [],
    chunk: () => {
      throw new Error('not here');
    },
  };
  const answered = new Promise((resolve) => (listener.log = (_, message) => resolve(message)));
  plane.call('rowCount', 50, 1000).catch(() => {});
  expect(await answered).toBeUndefined();
  delete listener.control;
  const refused = new Promise((resolve) => (listener.log = (_, message) => resolve(message)));
  plane.call('rowCount', 50, 1000).catch(() => {});
  expect(await refused).toBe('no handler for dropUser');
});

test('a plane that cannot load says why when it is started', async () => {
  const broken = new PlaneHost('redis', new URL('missing.mjs', url));
  broken.load();
  const settings = { ...nothing, config: defaultConfig() };
  await expect(broken.start(settings, listener)).rejects.toThrow('missing.mjs');
  await expect(broken.start(settings, listener)).rejects.toThrow('missing.mjs');
});

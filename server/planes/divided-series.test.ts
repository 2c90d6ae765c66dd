// Three nodes, and one without a replica, whose time series are divided into four groups.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { OutcomeUnknownError, type SeriesSelection } from '../../contracts/series-store.ts';
import type { TsmEngineOptions } from '../../engines/tsm/tsm-engine.ts';
import { until } from '../../test/support/until.ts';
import { awaited, whenFinished } from '../../universal-row/slices.ts';
import { Node, numbers, read, viewOf, write } from '../../test/support/series-nodes.ts';

const groups = [20, 21, 22, 23];

let nodes: Node[] = [];
let root = '';
afterEach(async () => {
  for (const node of nodes) await node.stop();
  rmSync(root, { recursive: true, force: true });
});

async function startAll(engine: Partial<TsmEngineOptions> = {}): Promise<void> {
  root = mkdtempSync(join(tmpdir(), 'polyrow-divided-series-'));
  const view = await viewOf(groups.length);
  nodes = numbers.map((number) => new Node(number, root, view, engine));
  for (const node of nodes) await node.start();
  expect(await change(nodes[3]!, 'CREATE DATABASE db')).toBe(made);
}

async function change(node: Node, q: string): Promise<string> {
  return (await node.post(`/query?db=db&q=${encodeURIComponent(q)}`, '')).text;
}

const made = '{"results":[{"statement_id":0}]}\n';

/** The node that leads a group. */
async function leaderOf(group: number): Promise<Node> {
  const found = (): Node | undefined =>
    nodes.find((node) => node.podOfGroup(group)?.role === 'leader');
  await until(() => found() !== undefined);
  return found()!;
}

/** Names of databases by group, where each is led. */
async function databases(): Promise<string[][]> {
  const all = await Promise.all(
    groups.map(async (group) => (await leaderOf(group)).podOfGroup(group)!),
  );
  return all.map((pod) =>
    pod
      .databases()
      .map(({ name }) => name)
      .sort(),
  );
}

const failures = (): string[] => nodes.flatMap((node) => node.failures);

test('every node writes to all groups and reads all of them', async () => {
  await startAll();
  let written = 0;
  const line = (): string => `m,s=${written % 40} v=${written} ${++written}`;
  for (let i = 0; i < 40; i++) {
    const body = Array.from({ length: 10 }, line).join('\n');
    await write(nodes[i % 4]!, body);
    expect(await read(nodes[(i + 1) % 4]!, 'SELECT count(v) FROM m')).toEqual([[0, written]]);
  }
  for (const node of nodes) {
    expect(await read(node, 'SHOW TAG VALUES WITH KEY = s')).toHaveLength(40);
    expect(await read(node, 'SHOW SERIES CARDINALITY')).toEqual([[40]]);
  }
  for (const group of groups) {
    expect((await leaderOf(group)).podOfGroup(group)!.engineStats().series).toBeGreaterThan(3);
  }
  await change(nodes[2]!, "DELETE FROM m WHERE s = '7'");
  for (const node of nodes) {
    expect(await read(node, 'SELECT count(v) FROM m')).toEqual([[0, written - written / 40]]);
  }
  await change(nodes[1]!, 'DROP MEASUREMENT m');
  for (const node of nodes) expect(await read(node, 'SHOW SERIES')).toEqual([]);
  expect(failures()).toEqual([]);
});

test('while leaders go, nothing that was acknowledged is lost, and nothing is there twice', async () => {
  await startAll();
  let written = 0;
  for (let round = 0; round < 3; round++) {
    const leader = await leaderOf(groups[round]!);
    const others = nodes.filter((node) => node !== leader);
    const writes = others.map(async (node) => {
      for (let i = 0; i < 15; i++) {
        const body = Array.from({ length: 8 }, () => `m,s=${written % 40} v=1 ${++written}`);
        await write(node, body.join('\n'));
      }
    });
    await leader.stop();
    await Promise.all(writes);
    await leader.start();
    expect(await read(others[0]!, 'SELECT count(v) FROM m')).toEqual([[0, written]]);
  }
  for (const node of nodes) {
    expect(await read(node, 'SELECT count(v), sum(v) FROM m')).toEqual([[0, written, written]]);
  }
  expect(failures()).toEqual([]);
});

test('points that a gateway sends again are not stored over what was written since', async () => {
  await startAll();
  for (const group of groups) {
    const pod = (await leaderOf(group)).podOfGroup(group)!;
    const real = pod.write.bind(pod);
    pod.write = async (...sent) => {
      pod.write = real;
      await real(...sent);
      await write(nodes[0]!, 'm v=2 1');
      throw new OutcomeUnknownError();
    };
  }
  await write(nodes[3]!, 'm v=1 1');
  expect(await read(nodes[1]!, 'SELECT v FROM m')).toEqual([[1, 2]]);
  expect(failures()).toEqual([]);
});

test('a DROP DATABASE that is delivered late leaves the database that was made anew', async () => {
  await startAll();
  await ledApart();
  const [own, other] = [groups[0]!, groups[1]!];
  const pod = (await leaderOf(other)).podOfGroup(other)!;
  // The request is on its way for longer than the leader that has sent it leads.
  let deliver!: () => void;
  const delivery = new Promise<void>((resolve) => (deliver = resolve));
  let late: Promise<unknown> | undefined;
  const real = pod.change.bind(pod);
  pod.change = (...[sent]) => {
    pod.change = real;
    late = delivery.then(() => real(sent));
    return late as Promise<void>;
  };
  const first = await leaderOf(own);
  const gateway = nodes.find((node) => node !== first && node !== nodes[3])!;
  const drop = nodes[3]!.post(`/query?q=${encodeURIComponent('DROP DATABASE db')}`, '');
  await until(() => late !== undefined);
  await first.stop();
  await drop;
  await leaderOf(own);
  await until(async () => (await change(gateway, 'CREATE DATABASE db')) === made);
  const lines = Array.from({ length: 40 }, (_, n) => `m,s=${n} v=1 1`);
  await write(gateway, lines.join('\n'));
  deliver();
  await expect(late).rejects.toThrow('a later change of the databases was made');
  expect(await read(gateway, 'SELECT count(v) FROM m')).toEqual([[0, 40]]);
  await first.start();
  expect(failures()).toEqual([]);
});

/** Two nodes lead the first partition and the second one. */
async function ledApart(): Promise<void> {
  const [own, other] = [groups[0]!, groups[1]!];
  for (let to = 1; (await leaderOf(own)) === (await leaderOf(other)); to = (to % 3) + 1) {
    const from = await leaderOf(other);
    from.series.transfer(other, to);
    await until(() => from.number === to || from.podOfGroup(other)?.role !== 'leader');
  }
}

test.each([
  ['deletePoints', 'DELETE FROM m'],
  ['dropSeries', 'DROP SERIES FROM m'],
  ['dropSeries', 'DROP MEASUREMENT m'],
] as const)(
  'a late delivery (%s) of %s leaves what was written after a later one',
  async (how, q) => {
    await startAll();
    await ledApart();
    const lines = Array.from({ length: 40 }, (_, n) => `m,s=${n} v=1 1`).join('\n');
    await write(nodes[3]!, lines);
    // So that the mark is known where the statement runs.
    await change(nodes[3]!, "DELETE FROM m WHERE s = '0'");
    const pod = (await leaderOf(groups[1]!)).podOfGroup(groups[1]!)!;
    const held: SeriesSelection[] = [];
    const real = pod[how].bind(pod);
    pod[how] = function* (selection) {
      Reflect.deleteProperty(pod, how);
      held.push(selection);
      yield* awaited(new Promise<void>(() => {}));
    };
    // The request is on its way for longer than its sender waits for it.
    const first = await leaderOf(groups[0]!);
    const gateway = nodes.find((node) => node !== first && node !== nodes[3])!;
    const one = change(nodes[3]!, q);
    await until(() => held.length > 0);
    await first.stop();
    await one;
    await leaderOf(groups[0]!);
    await until(async () => (await change(gateway, q)) === made);
    expect(await read(gateway, 'SELECT count(v) FROM m')).toEqual([]);
    await write(gateway, lines);
    await expect(whenFinished(real(held[0]!))).rejects.toThrow('another deletion was made');
    expect(await read(gateway, 'SELECT count(v) FROM m')).toEqual([[0, 40]]);
    await first.start();
    expect(failures()).toEqual([]);
  },
);

test('databases are in all groups, and those of a change that failed half way become equal', async () => {
  await startAll();
  expect(await databases()).toEqual(groups.map(() => ['db']));
  for (const node of nodes) expect(await read(node, 'SHOW DATABASES')).toEqual([['db']]);
  // A database that one group lacks and one that another has too many, as after kills.
  const [, second, third] = await Promise.all(groups.map(leaderOf));
  await second!.podOfGroup(21)!.administer({ kind: 'dropDatabase', database: 'db' });
  await third!.podOfGroup(22)!.administer({ kind: 'createDatabase', database: 'gone' });
  expect(await databases()).toEqual([['db'], [], ['db', 'gone'], ['db']]);
  // The next leader of the first group makes them equal, without being asked.
  const first = await leaderOf(20);
  await first.stop();
  await until(
    async () => JSON.stringify(await databases()) === JSON.stringify(groups.map(() => ['db'])),
  );
  await first.start();
  expect(failures()).toEqual([]);
});

test('while not all groups have a database, its queries and deletions say so', async () => {
  await startAll();
  // The second group does not make it.
  const held = nodes.map((node) => node.podOfGroup(21)!).filter((pod) => pod !== undefined);
  const refuse = (): Promise<void> => Promise.reject(new OutcomeUnknownError());
  for (const pod of held) Object.assign(pod, { change: refuse, administer: refuse });
  expect(await change(nodes[3]!, 'CREATE DATABASE new')).toContain('outcome unknown');
  const told = async (node: Node, q: string): Promise<string> =>
    (await node.post(`/query?db=new&epoch=ns&q=${encodeURIComponent(q)}`, '')).text;
  let written = false;
  for (let s = 0; !written; s++) {
    const { status, text } = await nodes[0]!.post('/write?db=new', `m,s=${s} v=7 1`);
    written = status === 204;
    if (!written) expect([status, text]).toEqual([503, expect.stringContaining('not all')]);
  }
  for (const node of nodes) {
    for (const q of ['SELECT v FROM m', 'DELETE FROM m', 'DROP SERIES FROM m']) {
      expect(await told(node, q)).toContain('not all partitions have it yet');
    }
  }
  for (const pod of held) {
    Reflect.deleteProperty(pod, 'change');
    Reflect.deleteProperty(pod, 'administer');
  }
  await until(async () => !(await told(nodes[1]!, 'SELECT v FROM m')).includes('not all'));
  expect(await told(nodes[2]!, 'DELETE FROM m')).toBe(made);
  expect(failures()).toEqual([]);
});

test('a deletion that a group refuses is not told to be done', async () => {
  await startAll();
  await write(nodes[0]!, Array.from({ length: 40 }, (_, s) => `m,s=${s} v=1 1`).join('\n'));
  const pod = (await leaderOf(22)).podOfGroup(22)!;
  // As after a flush that has failed.
  const failure = new Error('no space left on device');
  Object.defineProperty(pod.parts.engine, 'failure', { configurable: true, get: () => failure });
  for (const node of nodes) {
    for (const q of ['DELETE FROM m', 'DROP SERIES FROM m']) {
      expect(await change(node, q)).toContain('no space left on device');
    }
  }
  Reflect.deleteProperty(pod.parts.engine, 'failure');
  expect(await change(nodes[0]!, 'DELETE FROM m')).toBe(made);
  expect(failures()).toEqual([]);
});

test('a database is dropped everywhere, though a group had no leader', async () => {
  await startAll();
  await write(nodes[0]!, Array.from({ length: 40 }, (_, s) => `m,s=${s} v=1 1`).join('\n'));
  const first = await leaderOf(20);
  // The last group takes no change for a while.
  const held = nodes.map((node) => node.podOfGroup(23)!).filter((pod) => pod !== undefined);
  const refuse = (): Promise<void> => Promise.reject(new OutcomeUnknownError());
  for (const pod of held) Object.assign(pod, { change: refuse, administer: refuse });
  expect(await change(first, 'DROP DATABASE db')).toContain('outcome unknown');
  expect(await databases()).toEqual([[], [], [], ['db']]);
  // Made anew, it would have old points.
  expect(await change(nodes[3]!, 'CREATE DATABASE db')).toContain('outcome unknown');
  for (const pod of held) {
    Reflect.deleteProperty(pod, 'change');
    Reflect.deleteProperty(pod, 'administer');
  }
  await until(async () => (await databases()).every((names) => names.length === 0));
  expect(await change(nodes[3]!, 'CREATE DATABASE db')).toBe(made);
  for (const node of nodes) expect(await read(node, 'SELECT count(v) FROM m')).toEqual([]);
  expect(failures()).toEqual([]);
});

test('a session reads all that it has written, at any node', async () => {
  await startAll();
  let token = '';
  for (let n = 1; n <= 30; n++) {
    const at = nodes[n % 4]!;
    const response = await fetch(`http://127.0.0.1:${at.port}/write?db=db`, {
      method: 'POST',
      body: `m,s=${n % 10} v=1 ${n}`,
      headers: { 'X-Polyrow-Consistency': 'session', 'X-Polyrow-Session': token || 'AQ' },
    });
    expect(response.status).toBe(204);
    token = response.headers.get('x-polyrow-session')!;
    const seen = await nodes[(n + 1) % 4]!.count({ 'X-Polyrow-Session': token });
    expect(seen.count).toBe(String(n));
    token = seen.token!;
  }
});

test('a limit of series is that of all groups together', async () => {
  await startAll({ limits: { seriesPerDatabase: 20, valuesPerTag: Infinity } });
  for (let s = 0; s < 40; s++) await nodes[s % 3]!.post('/write?db=db', `m,s=${s} v=1 1`);
  const [[count]] = (await read(nodes[0]!, 'SHOW SERIES CARDINALITY')) as [[number]];
  // The others' counts may be a moment old.
  expect(count).toBeGreaterThanOrEqual(20);
  expect(count).toBeLessThanOrEqual(23);
});

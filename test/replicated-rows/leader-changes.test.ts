// Clients of any node while the leader of the group that has their rows changes.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { RespClient } from '../support/resp-client.ts';
import { show } from '../support/resp-value.ts';
import { ReplicatedRows } from './node-fixture.ts';
import { until } from '../support/until.ts';

let root: string;
let rows: ReplicatedRows;

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), 'polyrow-rows-'));
  rows = new ReplicatedRows(root);
  await rows.start();
});

afterEach(async () => {
  const { failures } = rows;
  await rows.close();
  rmSync(root, { recursive: true, force: true });
  expect(failures).toEqual([]);
});

const unknown = '-ERR outcome unknown';
const notDone = '-CLUSTERDOWN The partition has lost its leader, and the command was not done';

const waitingClients = (): number =>
  rows.nodes.reduce((sum, { redis }) => sum + redis.blocked.size, 0);

/** A client's view of its pipelines. */
interface Seen {
  /** Numbers whose push was acknowledged, or may have been done. */
  acknowledged: Set<string>;
  /** Those that were not done. */
  refused: Set<string>;
  unknown: number;
  /** Answers of INCR. */
  counts: number[];
  others: string[];
}

const perPipeline = 200;

const newSeen = (): Seen => ({
  ...{ acknowledged: new Set(), refused: new Set() },
  ...{ unknown: 0, counts: [], others: [] },
});

/** Those to the two commands of a transaction; of one that has not run, its error. */
function answersOf(exec: string): [string, string] {
  const both = /^\*\[(:\d+) (:\d+)\]$/.exec(exec);
  return both === null ? [exec, exec] : [both[1]!, both[2]!];
}

async function pipelines(
  client: RespClient,
  name: string,
  seen: Seen,
  isOver: () => boolean,
): Promise<void> {
  for (let n = 0; !isOver(); n += perPipeline) {
    const numbers = Array.from({ length: perPipeline }, (_, i) => String(n + i));
    // Some of them as one.
    const isWhole = (i: number): boolean => i % 5 === 0;
    const commands = numbers.flatMap((one, i) => {
      const two = [
        ['RPUSH', `list:${name}`, one],
        ['INCR', 'all'],
      ];
      return isWhole(i) ? [['MULTI'], ...two, ['EXEC']] : two;
    });
    const answers = (await client.pipeline(commands)).map(show);
    for (const [i, one] of numbers.entries()) {
      // These depend on no log.
      if (isWhole(i)) {
        const queued = answers.splice(0, 3).join();
        if (queued !== '+OK,+QUEUED,+QUEUED') seen.others.push(queued);
      }
      const [pushed, counted] = isWhole(i)
        ? answersOf(answers.splice(0, 1)[0]!)
        : (answers.splice(0, 2) as [string, string]);
      if (pushed.startsWith(':')) seen.acknowledged.add(one);
      else if (pushed === notDone) seen.refused.add(one);
      else if (pushed !== unknown) seen.others.push(pushed);
      if (counted.startsWith(':')) seen.counts.push(Number(counted.slice(1)));
      else if (counted === unknown) seen.unknown++;
      else if (counted !== notDone) seen.others.push(counted);
    }
  }
}

const anywhere = [1, 2, 3, 4];

// A node that leads no more tells its own clients what became of their writes; all others can send them again.
test.each<[string, () => unknown, number[], boolean]>([
  ['is asked to go', () => rows.transfer(), anywhere, false],
  ['is cut off', () => rows.depose(), anywhere, true],
  ['is cut off from clients of another node', () => rows.depose(), [4], false],
  ['loses its links', async () => (await rows.leader()).breakLinks(), [4], false],
])(
  'pipelines while the leader %s: what is acknowledged is done once and in order',
  async (_how, change, nodes, mayRefuse) => {
    const clients: RespClient[] = [];
    for (let i = 0; i < 10; i++) clients.push(await rows.node(nodes[i % nodes.length]!).client());
    let isOver = false;
    const seen = clients.map(newSeen);
    const running = clients.map((one, i) => pipelines(one, String(i), seen[i]!, () => isOver));
    const counted = (): number => seen.reduce((sum, one) => sum + one.counts.length, 0);
    for (let i = 0; i < 4; i++) {
      await pause(300);
      await change();
    }
    const before = counted();
    await until(() => counted() > before + 2 * perPipeline);
    isOver = true;
    await Promise.all(running);
    expect(seen.flatMap(({ others }) => others)).toEqual([]);
    expect(seen.map((one) => one.unknown)).toEqual(seen.map(() => 0));
    if (!mayRefuse) expect(seen.flatMap(({ refused }) => [...refused])).toEqual([]);
    const reader = await rows.node(4).client();
    for (const [i, { acknowledged, refused }] of seen.entries()) {
      const list = await reader.command('LRANGE', `list:${i}`, 0, -1);
      const pushed =
        'items' in list ? list.items.map((one) => ('text' in one ? one.text : '')) : [];
      expect(pushed.filter((one, at) => at > 0 && Number(one) <= Number(pushed[at - 1]))).toEqual(
        [],
      );
      const held = new Set(pushed);
      expect([...acknowledged].filter((one) => !held.has(one))).toEqual([]);
      expect([...refused].filter((one) => held.has(one))).toEqual([]);
    }
    const counts = seen.flatMap(({ counts: some }) => some);
    expect(new Set(counts).size).toBe(counts.length);
    const all = Number(await reader.text('GET', 'all').then((text) => text.replace(/\D/g, '')));
    expect(all).toBe(counts.length);
  },
);

interface Executed {
  /** Answers of INCR within transactions. */
  counts: number[];
  /** Transactions with a watched key that ran. */
  swaps: number;
  /** Of them, how many were answered that they had not run. */
  refused: number;
  others: string[];
}

/** INCR and RPUSH as one, and a counter that is read, and written unless it was changed. */
async function transactions(
  client: RespClient,
  name: string,
  isOver: () => boolean,
): Promise<Executed> {
  const executed: Executed = { counts: [], swaps: 0, refused: 0, others: [] };
  for (let n = 0; !isOver(); n++) {
    const plain = await client.pipeline([
      ['MULTI'],
      ['INCR', 'all'],
      ['RPUSH', `list:${name}`, String(n)],
      ['EXEC'],
    ]);
    const counted = /^\*\[:(\d+) :(\d+)\]$/.exec(show(plain[3]!));
    if (counted === null) executed.others.push(show(plain[3]!));
    else {
      executed.counts.push(Number(counted[1]));
      expect(Number(counted[2])).toBe(executed.counts.length);
    }
    await client.text('WATCH', 'swapped');
    const before = Number((await client.text('GET', 'swapped')).replace(/\D/g, ''));
    const swap = await client.pipeline([
      ['MULTI'],
      ['SET', 'swapped', String(before + 1)],
      ['RPUSH', 'swaps', name],
      ['EXEC'],
    ]);
    const text = show(swap[3]!);
    if (text === '(nil array)') executed.refused++;
    else if (text.startsWith('*[+OK :')) executed.swaps++;
    else executed.others.push(text);
  }
  return executed;
}

test.each<[string, () => unknown]>([
  ['is asked to go', () => rows.transfer()],
  ['is cut off', () => rows.depose()],
  ['loses its links', async () => (await rows.leader()).breakLinks()],
])(
  'transactions through another node while the leader %s are done once, and their outcome is known',
  async (_how, change) => {
    let isOver = false;
    const clients = await Promise.all(Array.from({ length: 6 }, () => rows.node(4).client()));
    await clients[0]!.text('SET', 'swapped', '0');
    const running = Promise.all(
      clients.map((one, i) => transactions(one, String(i), () => isOver)),
    );
    for (let i = 0; i < 5; i++) {
      await pause(300);
      await change();
    }
    await pause(300);
    isOver = true;
    const executed = await running;
    expect(executed.flatMap(({ others }) => others)).toEqual([]);
    const reader = await rows.node(4).client();
    const counts = executed.flatMap(({ counts: some }) => some);
    expect(new Set(counts).size).toBe(counts.length);
    expect(await reader.text('GET', 'all')).toBe(`"${counts.length}"`);
    const swaps = executed.reduce((sum, one) => sum + one.swaps, 0);
    expect(swaps).toBeGreaterThan(0);
    expect(await reader.text('LLEN', 'swaps')).toBe(`:${swaps}`);
    expect(await reader.text('GET', 'swapped')).toBe(`"${swaps}"`);
  },
);

test('a command that waits for a key is served behind a change of the leader, by any node', async () => {
  const waiting: Promise<string>[] = [];
  for (const node of [1, 2, 3, 4]) {
    const client = await rows.node(node).client();
    waiting.push(client.text('BLPOP', 'queue', 20));
  }
  await until(() => waitingClients() === 4);
  await rows.transfer();
  const pushing = await rows.node(4).client();
  for (const value of ['a', 'b', 'c', 'd']) {
    expect(await pushing.text('RPUSH', 'queue', value)).toMatch(/^:/);
  }
  const served = await Promise.all(waiting);
  expect(served.sort()).toEqual(['a', 'b', 'c', 'd'].map((value) => `*["queue" "${value}"]`));
});

test('a command that waits for a key ends in time while nobody leads', async () => {
  const client = await rows.node(4).client();
  const waits = client.text('BLPOP', 'queue', 1);
  await until(() => waitingClients() === 1);
  for (const node of [1, 2, 3]) rows.links.cut.add(node);
  expect(await waits).toBe('(nil array)');
  rows.links.cut.clear();
});

test('a transaction that watches a row fails if the leader has changed, and runs otherwise', async () => {
  for (const node of [1, 2, 3, 4]) {
    const client = await rows.node(node).client();
    expect(await client.text('SET', 'a', node)).toBe('+OK');
    const exec = async (): Promise<string> => {
      expect(await client.text('MULTI')).toBe('+OK');
      expect(await client.text('INCR', 'a')).toBe('+QUEUED');
      return client.text('EXEC');
    };
    expect(await client.text('WATCH', 'a')).toBe('+OK');
    expect(await exec()).toBe(`*[:${node + 1}]`);
    expect(await client.text('WATCH', 'a')).toBe('+OK');
    await rows.transfer();
    expect(await exec()).toBe('(nil array)');
    expect(await exec()).toBe(`*[:${node + 2}]`);
    expect(await client.text('WATCH', 'a')).toBe('+OK');
    const other = await rows.node((node % 4) + 1).client();
    expect(await other.text('INCR', 'a')).toBe(`:${node + 3}`);
    expect(await exec()).toBe('(nil array)');
  }
});

test('commands about whole databases, scripts and several databases, through any node', async () => {
  for (const node of [1, 2, 3, 4]) {
    const client = await rows.node(node).client();
    const answers: string[] = [];
    for (const words of [
      ['FLUSHALL'],
      ['MSET', 'a', '1', 'b', '2', 'c', '3'],
      ['DBSIZE'],
      ['EVAL', 'return redis.call("incrby", KEYS[1], ARGV[1])', '1', 'a', '5'],
      ['MOVE', 'a', '3'],
      ['KEYS', '*'],
      ['SWAPDB', '0', '3'],
      ['SCAN', '0'],
      ['RANDOMKEY'],
      ['FLUSHDB'],
      ['DBSIZE'],
    ]) {
      answers.push(await client.text(...words));
    }
    answers[5] = answers[5]!.length === '*["b" "c"]'.length ? 'two keys' : answers[5]!;
    expect(answers).toEqual([
      '+OK',
      '+OK',
      ':3',
      ':6',
      ':1',
      'two keys',
      '+OK',
      '*["0" *["a"]]',
      '"a"',
      '+OK',
      ':0',
    ]);
  }
});

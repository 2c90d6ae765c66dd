// Clients that read and write keys of several kinds, each noting when it called what and what came of it.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Redis } from 'ioredis';
import { goTool } from '../../support/go-tools.ts';
import type { Random } from '../../support/random.ts';
import type { SeriesClient } from './series-client.ts';

/** More make a key's history slow to judge. */
const operationsPerKey = 150;
const keysOfAKind = 3;
/** A body of points is sent up to so many times, until it is acknowledged: once more changes nothing. */
const sendings = 3;
/** Other points in each third body, which is stored in several batches then. */
const otherPoints = 600;

type Op = 'set' | 'get' | 'cas' | 'append' | 'list' | 'add' | 'members';

/**
 * What clients do with keys of each kind, as often as it is named. `register`, `list` and `set` are Redis's strings,
 * lists and sets. `point` is a point of a series that is overwritten, `series` is a series that gets new points.
 */
const kinds = {
  register: ['set', 'get', 'get', 'cas'],
  list: ['append', 'list'],
  set: ['add', 'members'],
  point: ['set', 'get'],
  series: ['add', 'members'],
} satisfies Record<string, Op[]>;

type Kind = keyof typeof kinds;
const kindNames = Object.keys(kinds) as Kind[];
const kindOf = (key: string): Kind => key.split(':')[0] as Kind;
const readOf = (kind: Kind): Op =>
  kind === 'list' ? 'list' : kind === 'set' || kind === 'series' ? 'members' : 'get';
const isRead = (op: Op): boolean => op === 'get' || op === 'list' || op === 'members';

/** Times in nanoseconds. Without `return` the outcome is unknown. `main.go` has the whole of it. */
export interface Operation {
  client: number;
  key: string;
  op: Op;
  value?: string;
  expected?: string;
  result?: string;
  call: number;
  return?: number;
  /** Where the outcome is unknown: what the client was told, and when. */
  error?: { at: number; text: string };
}

/** A client's two connections to a node. */
export interface Connections {
  readonly redis: Redis;
  readonly series: SeriesClient;
}

export const nanoseconds = (): number => Math.round(performance.now() * 1e6);

/** Errors that say that nothing was done. */
const notDone = /^CLUSTERDOWN|isn't writeable/;

export class Workload {
  readonly history: Operation[] = [];
  isOver = false;
  readonly #pauseMs: number;
  #begun = 0;
  #value = 0;

  /** Clients pause for up to so many milliseconds between their requests. */
  constructor(pauseMs: number) {
    this.#pauseMs = pauseMs;
  }

  /** Keys are new ones now and then, so that no history gets too long. */
  #keyOf(kind: Kind, random: Random): string {
    const era = Math.floor(this.#begun / (operationsPerKey * kindNames.length * keysOfAKind));
    return `${kind}:${era}:${random.below(keysOfAKind)}`;
  }

  /** One client, until `isOver`. */
  async run(number: number, to: Connections, random: Random): Promise<void> {
    while (!this.isOver) {
      this.#begun++;
      const operation = this.#choose(number, random);
      const { key, op } = operation;
      // A body of points has one for each of several series, in different partitions.
      const isBody = kindOf(key) === 'series' && op === 'add';
      const keys = isBody ? [...new Set([key, this.#keyOf('series', random)])] : [key];
      try {
        const result = isBody
          ? await sendBody(to.series, keys, operation.value!)
          : await send(to, operation);
        const end = nanoseconds();
        if (result !== undefined) {
          for (const one of keys)
            this.history.push({ ...operation, key: one, result, return: end });
        }
      } catch (error) {
        const text = (error as Error).message;
        if (!isRead(op) && !notDone.test(text)) {
          const told = { at: nanoseconds(), text };
          for (const one of keys) this.history.push({ ...operation, key: one, error: told });
        }
        await pause(20);
      }
      await pause(random.below(this.#pauseMs));
    }
  }

  /** Reads every key once, when all clients have ended: what no read shows by then was not done by any of them. */
  async readAll(from: Connections, patienceMs: number): Promise<void> {
    const end = performance.now() + patienceMs;
    for (const key of new Set(this.history.map((one) => one.key))) {
      for (let isDone = false; !isDone; ) {
        const op = readOf(kindOf(key));
        const operation: Operation = { client: 0, key, op, call: nanoseconds() };
        try {
          const result = await send(from, operation);
          this.history.push({ ...operation, result: result ?? '', return: nanoseconds() });
          isDone = true;
        } catch (error) {
          if (performance.now() > end) throw error;
          await pause(50);
        }
      }
    }
  }

  /**
   * Keys whose rows at a node's own replica are not those that `readAll` has read, once no client writes any more. A
   * wrong replica that did not lead since would not show in the history. `from.series` reads with consistency
   * `eventual`.
   */
  async differing(from: Connections, patienceMs: number): Promise<string[]> {
    const last = new Map<string, string>();
    for (const { key, op, result } of this.history) {
      if (isRead(op) && result !== undefined) last.set(key, result);
    }
    const end = performance.now() + patienceMs;
    for (;;) {
      const differing: string[] = [];
      try {
        await from.redis.call('CONSISTENCY', 'EVENTUAL');
        for (const [key, result] of last) {
          const op = readOf(kindOf(key));
          const here = await send(from, { client: 0, key, op, call: 0 });
          if (here !== result) differing.push(key);
        }
        if (differing.length === 0 || performance.now() > end) return differing;
      } catch (error) {
        if (performance.now() > end) throw error;
      }
      await pause(500);
    }
  }

  #choose(client: number, random: Random): Operation {
    const call = nanoseconds();
    const kind = random.pick(kindNames);
    const op = random.pick<Op>(kinds[kind]);
    const key = this.#keyOf(kind, random);
    return { client, key, op, call, ...(isRead(op) ? {} : { value: String(++this.#value) }) };
  }
}

/** The result; undefined where nothing was done and nothing learned. */
async function send(to: Connections, operation: Operation): Promise<string | undefined> {
  const kind = kindOf(operation.key);
  return kind === 'point' || kind === 'series'
    ? sendPoint(to.series, operation)
    : sendCommand(to.redis, operation);
}

async function sendCommand(redis: Redis, operation: Operation): Promise<string | undefined> {
  const { key, op, value } = operation;
  switch (op) {
    case 'set':
      await redis.set(key, value!);
      return '';
    case 'get':
      return (await redis.get(key)) ?? '';
    case 'append':
      return String(await redis.rpush(key, value!));
    case 'list':
      return (await redis.lrange(key, 0, -1)).join(',');
    case 'add':
      return String(await redis.sadd(key, value!));
    case 'members':
      return (await redis.smembers(key)).sort((a, b) => Number(a) - Number(b)).join(',');
    case 'cas': {
      await redis.watch(key);
      operation.expected = (await redis.get(key)) ?? '';
      operation.call = nanoseconds();
      const answer = await redis.multi().set(key, value!).exec();
      if (answer === null) return undefined;
      const [error] = answer[0]!;
      if (error) throw error;
      return '1';
    }
  }
}

async function sendPoint(series: SeriesClient, { key, op, value }: Operation): Promise<string> {
  if (isRead(op)) return series.read(kindOf(key), key);
  await series.write(bodyOf(value!, [`point,k=${key} v=${value}i 1`]));
  return '';
}

function bodyOf(value: string, lines: readonly string[]): readonly string[] {
  const number = Number(value);
  if (number % 3 !== 0) return lines;
  const others = Array.from(
    { length: otherPoints },
    (_, i) => `other,k=${i % 7} v=${number}i ${i}`,
  );
  const at = number % otherPoints;
  return [...others.slice(0, at), ...lines, ...others.slice(at)];
}

/** A new point with the time and the value `value` for each series, in one body. */
async function sendBody(
  series: SeriesClient,
  keys: readonly string[],
  value: string,
): Promise<string> {
  for (let left = sendings; ; left--) {
    try {
      const lines = keys.map((key) => `series,k=${key} v=${value}i ${value}`);
      await series.write(bodyOf(value, lines));
      return '1';
    } catch (error) {
      if (left === 1) throw error;
      await pause(20);
    }
  }
}

/** The judge, built from the Go module in this folder; or why it cannot be. */
export function judgeTool(): ReturnType<typeof goTool> {
  return goTool({
    module: fileURLToPath(new URL('.', import.meta.url)),
    program: 'polyrow/test/linearizability',
    optimized: true,
  });
}

/** `ok`; or what is wrong with which key. */
export async function judge(program: string, history: readonly Operation[]): Promise<string> {
  const child = spawn(program, { stdio: ['pipe', 'pipe', 'inherit'] });
  let verdict = '';
  child.stdout.on('data', (chunk: Buffer) => (verdict += chunk.toString()));
  const closed = once(child, 'close');
  child.stdin.end(history.map((one) => JSON.stringify(one)).join('\n'));
  await closed;
  return verdict.trim();
}

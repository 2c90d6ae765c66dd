// Clients that read, write, compare and set, and append, each noting when it called what and what came of it.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Redis } from 'ioredis';
import { goTool } from '../../support/go-tools.ts';
import type { Random } from '../../support/random.ts';

/** More make a key's history slow to judge. */
const operationsPerKey = 150;
const keysOfAKind = 3;

/** Times in nanoseconds. Without `return` the outcome is unknown. `main.go` has the whole of it. */
export interface Operation {
  client: number;
  key: string;
  op: 'set' | 'get' | 'cas' | 'append' | 'list';
  value?: string;
  expected?: string;
  result?: string;
  call: number;
  return?: number;
  /** Where the outcome is unknown: what the client was told, and when. */
  error?: { at: number; text: string };
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
  #keyOf(kind: string, random: Random): string {
    const era = Math.floor(this.#begun / (operationsPerKey * 2 * keysOfAKind));
    return `${kind}:${era}:${random.below(keysOfAKind)}`;
  }

  /** One client, until `isOver`. */
  async run(number: number, redis: Redis, random: Random): Promise<void> {
    while (!this.isOver) {
      this.#begun++;
      const operation = this.#choose(number, random);
      const { key, op } = operation;
      try {
        const result = await send(redis, operation);
        if (result !== undefined)
          this.history.push({ ...operation, result, return: nanoseconds() });
      } catch (error) {
        const isRead = op === 'get' || op === 'list';
        const text = (error as Error).message;
        if (!isRead && !notDone.test(text)) {
          this.history.push({ ...operation, error: { at: nanoseconds(), text } });
        }
        await pause(20, key);
      }
      await pause(random.below(this.#pauseMs));
    }
  }

  /** Reads every key once, when all clients have ended: what no read shows by then was not done by any of them. */
  async readAll(redis: Redis): Promise<void> {
    for (const key of new Set(this.history.map((one) => one.key))) {
      const op = key.startsWith('list') ? 'list' : 'get';
      for (let isRead = false; !isRead; ) {
        const operation: Operation = { client: 0, key, op, call: nanoseconds() };
        try {
          const result = await send(redis, operation);
          this.history.push({ ...operation, result: result ?? '', return: nanoseconds() });
          isRead = true;
        } catch {
          await pause(50);
        }
      }
    }
  }

  /**
   * Keys whose rows at a node's own replica are not those that `readAll` has read, once no client writes any more. A
   * wrong replica that did not lead since would not show in the history.
   */
  async differing(redis: Redis, patienceMs: number): Promise<string[]> {
    const last = new Map<string, string>();
    for (const { key, op, result } of this.history) {
      if ((op === 'get' || op === 'list') && result !== undefined) last.set(key, result);
    }
    const end = performance.now() + patienceMs;
    for (;;) {
      const differing: string[] = [];
      try {
        await redis.call('CONSISTENCY', 'EVENTUAL');
        for (const [key, result] of last) {
          const op = key.startsWith('list') ? 'list' : 'get';
          const here = await send(redis, { client: 0, key, op, call: 0 });
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
    const op = random.pick<Operation['op']>(['set', 'get', 'get', 'cas', 'append', 'list']);
    const isList = op === 'append' || op === 'list';
    const key = this.#keyOf(isList ? 'list' : 'register', random);
    const value = op === 'set' || op === 'cas' || op === 'append' ? String(++this.#value) : '';
    return { client, key, op, call, ...(value === '' ? {} : { value }) };
  }
}

/** The result; undefined where nothing was done and nothing learned. */
async function send(redis: Redis, operation: Operation): Promise<string | undefined> {
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

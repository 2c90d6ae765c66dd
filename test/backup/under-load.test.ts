// A backup while clients write, row by row: what is restored is what had been written at one point of each
// log, all of it, and nothing that came later.
//
// Every write is a transaction that draws a number from a counter of its database. So the writes of a database
// are in one order, which their clients know, and the counter in the backup tells which of them it must have.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { isBuilt } from '../cli/polyrow-process.ts';
import type { Polyrow } from '../support/polyrow.ts';
import { Random } from '../support/random.ts';
import type { RespClient } from '../support/resp-client.ts';
import { show } from '../support/resp-value.ts';
import { BackupScene, query, writeLines } from './backup-commands.ts';
import { seedFrom } from '../support/seed.ts';

const full = process.env['POLYROW_FULL'] === '1';
const rounds = full ? 10 : 1;
const seed = seedFrom('BACKUP_SEED');

let scene: BackupScene;
beforeEach(() => {
  scene = new BackupScene();
});
afterEach(() => scene.remove());

type Write = (state: Map<string, string>) => void;

/** Clients that write to one database, and what the database is after each write. */
class Writers {
  readonly #server: Polyrow;
  readonly #database: number;
  readonly #random: Random;
  /** By the number that it drew. */
  readonly writes = new Map<number, Write>();
  #isRunning = true;
  #running: Promise<void>[] = [];

  constructor(server: Polyrow, database: number, random: Random) {
    this.#server = server;
    this.#database = database;
    this.#random = random;
  }

  start(count: number): void {
    this.#running = Array.from({ length: count }, () => this.#run());
  }

  async stop(): Promise<void> {
    this.#isRunning = false;
    await Promise.all(this.#running);
  }

  async #run(): Promise<void> {
    const client = await this.#server.client();
    await client.text('SELECT', this.#database);
    while (this.#isRunning) {
      const batch = Array.from({ length: 20 }, () => this.#draw());
      const commands = batch.flatMap(({ command }) => [
        ['MULTI'],
        ['INCR', 'drawn'],
        command,
        ['EXEC'],
      ]);
      const replies = await client.pipeline(commands);
      for (const [i, { write }] of batch.entries()) {
        const text = show(replies[4 * i + 3]!);
        const [, number] = /^\*\[:(\d+)/.exec(text) ?? [];
        if (number === undefined) throw new Error(`${batch[i]!.command.join(' ')}: ${text}`);
        this.writes.set(Number(number), write);
      }
    }
    client.close();
  }

  #draw(): { command: string[]; write: Write } {
    const random = this.#random;
    const key = `key:${random.below(3000)}`;
    const value = `${random.below(1e9)}`.repeat(1 + random.below(30));
    const kind = random.below(10);
    if (kind === 0) return { command: ['DEL', key], write: (state) => void state.delete(key) };
    if (kind < 7) {
      return { command: ['SET', key, value], write: (state) => void state.set(key, value) };
    }
    // One large row, that many write to.
    const field = `field:${random.below(5000)}`;
    return {
      command: ['HSET', 'hash', field, value],
      write: (state) => void state.set(`hash ${field}`, value),
    };
  }

  /** State of the database after this many writes. */
  stateAt(drawn: number): Map<string, string> {
    const state = new Map<string, string>();
    for (let number = 1; number <= drawn; number++) {
      const write = this.writes.get(number);
      if (write === undefined) throw new Error(`nobody made write ${number} of ${drawn}`);
      write(state);
    }
    return state;
  }
}

/** Every key and field. */
async function read(client: RespClient): Promise<{ drawn: number; state: Map<string, string> }> {
  const items = async (...words: string[]): Promise<string[]> => {
    const reply = await client.command(...words);
    return (reply as { items?: { text: string }[] }).items?.map(({ text }) => text) ?? [];
  };
  const state = new Map<string, string>();
  for (const key of await items('KEYS', 'key:*')) {
    const reply = await client.command('GET', key);
    state.set(key, (reply as { text: string }).text);
  }
  const hash = await items('HGETALL', 'hash');
  for (let i = 0; i < hash.length; i += 2) state.set(`hash ${hash[i]!}`, hash[i + 1]!);
  const drawn = await client.command('GET', 'drawn');
  return { drawn: Number((drawn as { text: string }).text), state };
}

async function compare(
  target: Polyrow,
  writers: readonly Writers[],
  where: string,
): Promise<number[]> {
  const points: number[] = [];
  const client = await target.client();
  for (const [database, writer] of writers.entries()) {
    await client.text('SELECT', database);
    const { drawn, state } = await read(client);
    points.push(drawn);
    const expected = writer.stateAt(drawn);
    expect(state, `${where}, database ${database} after ${drawn}`).toEqual(expected);
  }
  client.close();
  return points;
}

/** Points of one series whose values count up: the restored ones are the first so many. */
class PointWriter {
  written = 0;
  #isRunning = true;
  #running: Promise<void> = Promise.resolve();

  start(server: Polyrow): void {
    this.#running = this.#run(server);
  }

  async #run(server: Polyrow): Promise<void> {
    while (this.#isRunning) {
      const lines = Array.from({ length: 50 }, (_, i) => {
        const n = this.written + i;
        return `m v=${n}i ${1_700_000_000 + n * 60}000000000`;
      });
      await writeLines(server, 'd', lines.join('\n'));
      this.written += 50;
    }
  }

  async stop(): Promise<void> {
    this.#isRunning = false;
    await this.#running;
  }
}

describe.skipIf(!isBuilt)('a backup under load', () => {
  test(`restored ${rounds} times and compared row by row`, {
    timeout: 120_000 * rounds,
  }, async () => {
    const random = new Random(seed);
    const source = await scene.server([
      '--wal.segment-bytes',
      '1mb',
      '--wal.checkpoint-bytes',
      '4mb',
    ]);
    await scene.answer(source, 'table', 'create', '1', '--model', 'kv');
    await query(source, 'CREATE DATABASE d');
    const writers = [0, 1].map((database) => new Writers(source, database, random));
    const points = new PointWriter();
    for (const writer of writers) writer.start(3);
    points.start(source);
    while (writers.some(({ writes }) => writes.size < 500)) await sleep(20);
    for (let round = 1; round <= rounds; round++) {
      const where = `seed ${seed}, round ${round}`;
      const before = points.written;
      const drawnBefore = writers.map(({ writes }) => writes.size);
      await scene.backup(source, ...(round % 3 === 1 ? [] : ['--incremental']));
      const drawnAfter = writers.map(({ writes }) => writes.size);
      const after = points.written + 50;
      await sleep(random.below(300));
      const target = await scene.server();
      await scene.restore(target);
      const drawn = await compare(target, writers, where);
      for (const [database, count] of drawn.entries()) {
        // The backup's moment lies within its duration.
        expect(count, where).toBeGreaterThanOrEqual(drawnBefore[database]!);
        expect(count, where).toBeLessThanOrEqual(drawnAfter[database]! + 3 * 20);
      }
      const [count] = (await query(target, 'SELECT count(v), max(v) FROM m', 'd')) as {
        values: [string, number, number][];
      }[];
      const [, found, max] = count!.values[0]!;
      expect(max, where).toBe(found - 1);
      expect(found, where).toBeGreaterThanOrEqual(before);
      expect(found, where).toBeLessThanOrEqual(after);
      await target.remove();
    }
    for (const writer of writers) await writer.stop();
    await points.stop();
    expect(await scene.verify()).toMatchObject({ code: 0 });
  });
});

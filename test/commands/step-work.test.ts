// Work of one step of a long command: elements read or changed in the store, bytes of the answer
// and of the log. On both row engines, over rows many times larger than any step.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { allCommands } from '../../access/redis/commands/all.ts';
import { CommandRegistry } from '../../access/redis/commands/registry.ts';
import { RespWriter } from '../../access/redis/resp-writer.ts';
import type { Engine } from '../../engines/engine.ts';
import { KvEngine } from '../../engines/kv/kv-engine.ts';
import { MemoryEngine } from '../../engines/memory/memory-engine.ts';
import { noRules } from '../../storage-node/table-rules.ts';
import { Transaction } from '../../storage-node/transaction.ts';
import { Arguments } from '../../universal-row/arguments.ts';
import { isWrite, type TableSpan } from '../../universal-row/command.ts';
import { ReadFault } from '../../universal-row/errors.ts';
import { RecordBatchWriter } from '../../universal-row/record-batch.ts';
import { RowWork } from '../../universal-row/row-work.ts';
import { stepBytes, stepElements, type Steps } from '../../universal-row/steps.ts';
import { Random } from '../support/random.ts';

const size = Number(process.env['POLYROW_STEP_ROWS'] ?? 12_000);
const root = mkdtempSync(join(tmpdir(), 'polyrow-steps-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const registry = new CommandRegistry(allCommands);
const span: TableSpan = { first: 0, count: 2 };
const rules = new Map([0, 1].map((table) => [table, noRules]));

function argumentsOf(words: readonly string[]): Arguments {
  const args = new Arguments();
  args.reserve(words.length);
  args.buf = Buffer.from(words.join(' '), 'latin1');
  let at = 0;
  for (const word of words) {
    args.starts[args.count] = at;
    args.lens[args.count++] = word.length;
    at += word.length + 1;
  }
  return args;
}

/** Elements looked at, read, found or changed. */
function elementsOf(work: RowWork): number {
  let sum = 0;
  for (const [name, n] of Object.entries(work)) if (!name.endsWith('Bytes')) sum += n;
  return sum;
}

/** Counts bytes when they are written: those of a value that is reserved come later. */
class CountingWriter extends RecordBatchWriter {
  #ahead = 0;

  get written(): number {
    return this.pos - this.#ahead;
  }

  override reserveValue(...[table, b, s, n, bytes, expireAt]: Reserved): number {
    this.#ahead += bytes;
    return super.reserveValue(table, b, s, n, bytes, expireAt);
  }

  override fill(at: number, vb: Buffer, vs: number, vn: number): void {
    this.#ahead -= vn;
    super.fill(at, vb, vs, vn);
  }
}

type Reserved = Parameters<RecordBatchWriter['reserveValue']>;

interface Worst {
  steps: number;
  elements: number;
  answered: number;
  logged: number;
}

class Bench {
  readonly #engine: Engine;
  readonly #random = new Random(1);
  #index = 0;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** Runs the command; the most that one of its steps did, undefined for one that was short. */
  async run(words: readonly string[]): Promise<Worst | undefined> {
    const engine = this.#engine;
    const args = argumentsOf(words);
    const command = registry.lookup(args)!;
    const entry = command.subcommands?.get(words[1]!.toLowerCase()) ?? command;
    const writer = new CountingWriter();
    const tx = new Transaction(engine, writer, rules, { next: () => this.#random.next() });
    const begin = (): void => tx.begin(0, span, args, isWrite(entry.action), 1_000_000, true);
    let long: ReturnType<NonNullable<typeof entry.run>> = undefined;
    for (let isRun = false; !isRun; ) {
      try {
        begin();
        long = entry.run!(tx, args, new RespWriter(1024));
        isRun = true;
      } catch (error) {
        if (!(error instanceof ReadFault)) throw error;
        engine.rollback();
        writer.pos = 0;
        await error.ready;
      }
    }
    begin();
    const worst = long && (await this.#drive(long(tx, args, this.#reply), tx, writer));
    engine.commit(++this.#index);
    engine.endTick();
    if (engine.congested === true) await engine.drained!();
    return worst || undefined;
  }

  #reply = new RespWriter(16).fork(0);

  async #drive(steps: Steps, tx: Transaction, writer: CountingWriter): Promise<Worst> {
    const engine = this.#engine;
    const reply = this.#reply;
    const worst: Worst = { steps: 0, elements: 0, answered: 0, logged: 0 };
    for (;;) {
      const savepoint = engine.savepoint?.();
      const [position, written] = [writer.pos, writer.written];
      const answered = reply.mark();
      tx.work.reset();
      const { done, value } = steps.next();
      worst.steps++;
      worst.elements = Math.max(worst.elements, elementsOf(tx.work));
      worst.answered = Math.max(worst.answered, reply.mark() - answered);
      worst.logged = Math.max(worst.logged, writer.written - written);
      if (done === true) break;
      if (value === undefined) continue;
      if (savepoint !== undefined) engine.rollbackTo!(savepoint);
      writer.pos = position;
      reply.rollback(answered);
      await value.ready;
    }
    this.#reply = new RespWriter(16).fork(0);
    return worst;
  }
}

const range = (make: (i: number) => string[], count = size): string[] =>
  Array.from({ length: count }, (_, i) => make(i)).flat();

const fill: readonly string[][] = [
  ['MSET', ...range((i) => [`k${i}`, 'v'])],
  ['SADD', 's1', ...range((i) => [`m${i}`])],
  ['SADD', 's2', ...range((i) => [`m${i + 1000}`])],
  ['ZADD', 'z1', ...range((i) => [String(i), `m${i}`])],
  ['ZADD', 'z2', ...range((i) => [String(i), `m${2 * i}`])],
  ['HSET', 'h', ...range((i) => [`m${i}`, 'v'])],
  ['RPUSH', 'l', ...range((i) => [`m${i}`])],
];

/** Bytes of a bitmap that is long, and short commands that make it. */
const bitmapBytes = 20 * stepBytes;
const bitmaps: readonly string[][] = [
  ['SETRANGE', 'b1', String(bitmapBytes - 1), 'x'],
  ['SETRANGE', 'b2', String(bitmapBytes - 1), 'y'],
];

/** Streams, made by short commands as well. */
const streams: readonly string[][] = [
  ...Array.from({ length: size }, (_, i) => ['XADD', 'st', `${i + 1}-1`, 'field', `value ${i}`]),
  ...['a', 'b', 'c'].map((group) => ['XGROUP', 'CREATE', 'st', group, '0']),
  ['XGROUP', 'CREATECONSUMER', 'st', 'a', 'none'],
];

const half = size / 2;
const ids = range((i) => [`${i + 1}-1`], half);
const onStreams: readonly string[][] = [
  ...[
    'XRANGE st - +',
    'XREVRANGE st + -',
    'XREAD STREAMS st 0',
    'XREADGROUP GROUP a one STREAMS st >',
    'XREADGROUP GROUP b one STREAMS st >',
    'XREADGROUP GROUP a one STREAMS st 0',
    `XPENDING st a - + ${size}`,
    'XPENDING st a IDLE 5 - + 10',
    'XINFO STREAM st FULL COUNT 0',
    `XAUTOCLAIM st a other 0 - COUNT ${size}`,
    'COPY st st2',
    'COPY st st3',
  ].map((line) => line.split(' ')),
  ['XCLAIM', 'st', 'a', 'third', '0', ...ids],
  ['XCLAIM', 'st2', 'a', 'third', '0', ids[0]!, ...range(() => ['FORCE'])],
  ['XACK', 'st', 'a', ...ids],
  'XGROUP DELCONSUMER st b one'.split(' '),
  'XGROUP DESTROY st a'.split(' '),
  ['XDEL', 'st', ...ids],
  'XTRIM st MAXLEN 10'.split(' '),
  `XTRIM st2 MINID ~ ${half} LIMIT 0`.split(' '),
  'XADD st2 MAXLEN 10 * f v'.split(' '),
  `XTRIM st3 MINID ${half}`.split(' '),
  ['XADD', 'st4', '*', ...range((i) => [`f${i}`, 'v'])],
];

const names = (prefix: string): string[] => range((i) => [`${prefix}${i}`], half);
const commands: readonly string[][] = [
  ...fill,
  ...[
    'KEYS *',
    'SMEMBERS s1',
    'HGETALL h',
    'HKEYS h',
    'HVALS h',
    'LRANGE l 0 -1',
    'ZRANGE z1 0 -1 WITHSCORES',
    'ZREVRANGEBYSCORE z1 +inf 10',
    'ZRANGEBYLEX z1 - +',
    'SINTER s1 s2',
    'SUNION s1 s2',
    'SDIFF s1 s2',
    'SINTERCARD 2 s1 s2',
    'SUNIONSTORE d s1 s2',
    'ZUNION 2 z1 z2 WITHSCORES',
    'ZINTER 2 z1 z2',
    'ZDIFF 2 z1 z2',
    'ZUNIONSTORE zu 2 z1 s2',
    'ZRANGESTORE zr z1 0 -1',
    `SRANDMEMBER s1 -${size}`,
    `SRANDMEMBER s1 ${half + 1}`,
    `HRANDFIELD h -${size} WITHVALUES`,
    `ZRANDMEMBER z1 -${size} WITHSCORES`,
    'COPY h h2',
    'COPY l l2',
    'COPY z1 z3 DB 1',
    'MOVE zu 1',
    'SORT s1 ALPHA',
    'SORT l ALPHA STORE sorted',
    'LPOS l none',
    'LREM l2 0 m5',
    `LINSERT l2 BEFORE m${size - 5} x`,
    `LTRIM l2 10 ${half}`,
    `LPOP l ${half}`,
    `LMPOP 1 l LEFT COUNT ${half - 10}`,
    `ZREMRANGEBYRANK zr 0 ${half}`,
    `ZPOPMIN z1 ${half}`,
    `SPOP d ${half}`,
  ].map((line) => line.split(' ')),
  ['MGET', ...names('k')],
  ['EXISTS', ...names('k')],
  ['SMISMEMBER', 's1', ...names('m')],
  ['ZMSCORE', 'z2', ...names('m')],
  ['HMGET', 'h', ...names('m')],
  ['HDEL', 'h', ...names('m')],
  ['SREM', 's1', ...names('m')],
  ['ZREM', 'z2', ...names('m')],
  ['DEL', ...names('k')],
  ['PFADD', 'p', ...names('e')],
  ['PFCOUNT', 'p', ...names('none')],
  ['PFMERGE', 'p2', 'p', ...names('none')],
  'DUMP s2'.split(' '),
  'DUMP z2'.split(' '),
  'DUMP h'.split(' '),
  'DUMP sorted'.split(' '),
  ['GEOADD', 'g', ...range((i) => [String(i % 180), String(i % 85), `m${i}`])],
  'GEOSEARCH g FROMLONLAT 20 20 BYRADIUS 30000 km WITHDIST WITHCOORD'.split(' '),
  'GEOSEARCH g FROMLONLAT 20 20 BYBOX 40000 40000 km DESC'.split(' '),
  'GEOSEARCHSTORE g2 g FROMLONLAT 20 20 BYRADIUS 30000 km STOREDIST'.split(' '),
  ['GEOPOS', 'g', ...names('m')],
  ['GEOHASH', 'g', ...names('m')],
  ['GET', 'b1'],
  ['GETRANGE', 'b1', '1', '-1'],
  ['GETEX', 'b1'],
  ['MGET', 'b1', 'none'],
  ['BITCOUNT', 'b1'],
  ['BITPOS', 'b1', '1'],
  ['BITOP', 'XOR', 'b3', 'b1', 'b2'],
  ['BITOP', 'OR', 'b1', ...names('none')],
  ['BITFIELD', 'b3', ...range((i) => ['INCRBY', 'u8', String(i * 8), '1'])],
  ['BITFIELD_RO', 'b3', ...range((i) => ['GET', 'u8', String(i * 8)])],
];

test.each(['memory', 'kv'])('%s', { timeout: 600_000 }, async (model) => {
  const engine: Engine =
    model === 'memory' ? new MemoryEngine() : new KvEngine({ directory: join(root, model) });
  await engine.open();
  const bench = new Bench(engine);
  for (const words of [...bitmaps, ...streams]) expect(await bench.run(words)).toBeUndefined();
  for (const words of [...commands, ...onStreams]) {
    const title = words.slice(0, 4).join(' ');
    const worst = await bench.run(words);
    expect(worst, `${title} is long`).toBeDefined();
    const { steps, elements, answered, logged } = worst!;
    expect(steps, `${title}: steps`).toBeGreaterThan(10);
    // An element that is picked is looked up, read, and perhaps its score or a second row.
    expect(elements, `${title}: elements`).toBeLessThan(4 * stepElements);
    expect(answered, `${title}: bytes of the answer`).toBeLessThan(2 * stepBytes);
    expect(logged, `${title}: bytes of the log`).toBeLessThan(2 * stepBytes);
  }
  await engine.close();
});

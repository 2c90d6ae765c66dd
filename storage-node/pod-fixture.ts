// For tests: a pod over the memory engine and a log on a faulty disk, driven by a line of words:
//
//   const f = await PodFixture.open();
//   f.run('put a 1')  ->  'OK'        f.run('get a')  ->  '1'        await f.crash()

import { Arguments } from '../universal-row/arguments.ts';
import { Slice } from '../universal-row/bytes.ts';
import { Action, type Command, type Transform } from '../universal-row/command.ts';
import type { Clock } from '../universal-row/environment.ts';
import { CommandError, noSuchKey, wrongType } from '../universal-row/errors.ts';
import type { Reply } from '../universal-row/reply.ts';
import { type Row, type Rows, Shape } from '../universal-row/rows.ts';
import { applyBatch } from '../engines/apply.ts';
import { decodeSnapshot, type EngineContents } from '../engines/conformance/contents.ts';
import type { Engine } from '../engines/engine.ts';
import { MemoryEngine } from '../engines/memory/memory-engine.ts';
import { FaultyDisk } from './disk/faulty-disk.ts';
import type { PodOptions } from './pod-options.ts';
import { Pod } from './pod.ts';
import { seededRng } from './replicator/group/log-fixture.ts';
import { LocalGroup } from './replicator/group/local-group.ts';
import { noRules, type TableRules } from './table-rules.ts';

/** Time as a test sets it. */
export class TestClock implements Clock {
  time = 1_000_000;
  /** Milliseconds that each look at the monotonic time takes. */
  lookMs = 0;
  #elapsedMs = 0;
  now(): number {
    return this.time;
  }
  monotonic(): number {
    this.#elapsedMs += this.lookMs;
    return this.#elapsedMs;
  }
}

/** An answer as text: items in a row, errors as `(error) ...`. */
export class TextReply implements Reply {
  readonly version = 2;
  readonly items: string[] = [];

  ok(): void {
    this.simple('OK');
  }
  simple(text: string): void {
    this.items.push(text);
  }
  error(text: string): void {
    this.items.push(`(error) ${text}`);
  }
  integer(value: number): void {
    this.items.push(String(value));
  }
  bigInteger(value: bigint): void {
    this.items.push(String(value));
  }
  bulk(b: Buffer, s: number, n: number): void {
    this.items.push(b.toString('latin1', s, s + n));
  }
  bulkHead(): void {
    this.items.push('');
  }
  bulkPart(b: Buffer, s: number, n: number): void {
    this.items.push(this.items.pop()! + b.toString('latin1', s, s + n));
  }
  bulkTail(): void {
    // The item is whole.
  }
  text(value: string): void {
    this.items.push(value);
  }
  verbatim(value: string): void {
    this.items.push(value);
  }
  nil(): void {
    this.items.push('(nil)');
  }
  nilArray(): void {
    this.items.push('(nil)');
  }
  double(value: number): void {
    this.items.push(String(value));
  }
  boolean(value: boolean): void {
    this.items.push(String(value));
  }
  array(count: number): void {
    this.items.push(`*${count}`);
  }
  map(pairs: number): void {
    this.items.push(`%${pairs}`);
  }
  set(count: number): void {
    this.items.push(`~${count}`);
  }
  open(): number {
    return this.items.push('');
  }
  close(mark: number, kind: 'array' | 'set' | 'map', count: number): void {
    this.items[mark - 1] = `${kind} ${count}`;
  }
  mark(): number {
    return this.items.length;
  }
  rollback(mark: number): void {
    this.items.length = mark;
  }
  fork(mark: number): TextReply {
    const own = new TextReply();
    own.items.push(...this.items.splice(mark));
    return own;
  }
  toString(): string {
    return this.items.join(' ');
  }
}

const span = { first: 0, count: 16 };

interface Verb {
  action: Action;
  run: Transform;
  grows?: boolean;
}

function find(rows: Rows, args: Arguments, word = 1): Row {
  return rows.find(args.buf, args.starts[word]!, args.lens[word]!);
}

/** The container under the first word, made if it is not there. */
function container(rows: Rows, args: Arguments, shape: Shape): Row {
  const row = find(rows, args);
  if (row === 0) return rows.create(args.buf, args.starts[1]!, args.lens[1]!, shape);
  if (rows.shape(row) !== shape) throw wrongType;
  return row;
}

function existing(rows: Rows, args: Arguments, shape?: Shape): Row {
  const row = find(rows, args);
  if (row === 0) throw noSuchKey;
  if (shape !== undefined && rows.shape(row) !== shape) throw wrongType;
  return row;
}

type Bytes = [b: Buffer, s: number, n: number];
function word(args: Arguments, i: number): Bytes {
  return [args.buf, args.starts[i]!, args.lens[i]!];
}

function put(rows: Rows, args: Arguments): void {
  const expireAt = args.count > 3 ? args.integer(3) : 0;
  rows.putValue(...word(args, 1), ...word(args, 2), expireAt);
}

function get(rows: Rows, args: Arguments, reply: Reply): void {
  const row = find(rows, args);
  if (row === 0) {
    reply.nil();
    return;
  }
  const out = new Slice();
  if (rows.shape(row) !== Shape.value) throw wrongType;
  rows.value(row, out);
  reply.bulk(out.b, out.s, out.n);
}

const empty: Bytes = [Buffer.alloc(0), 0, 0];

/** A write that answers OK. */
function write(run: (rows: Rows, args: Arguments) => void, action: Action = Action.update): Verb {
  return {
    action,
    grows: action !== Action.delete,
    run(rows, args, reply) {
      run(rows, args);
      reply.ok();
    },
  };
}

/** Commands by a line's first word; the second word is mostly a key. */
export const verbs: Record<string, Verb> = {
  get: { action: Action.fetch, run: get },
  rows: {
    action: Action.scan,
    run(rows, _args, reply) {
      reply.integer(rows.rowCount());
    },
  },
  put: write(put, Action.put),
  patch: write((rows, args) => {
    rows.patchValue(existing(rows, args, Shape.value), args.integer(2), ...word(args, 3));
  }),
  field: write((rows, args) => {
    rows.putField(container(rows, args, Shape.map), ...word(args, 2), ...word(args, 3));
  }),
  member: write((rows, args) => {
    rows.putField(container(rows, args, Shape.set), ...word(args, 2), ...empty);
  }),
  unfield: write((rows, args) => {
    const row = existing(rows, args);
    const shape = rows.shape(row);
    if (shape === Shape.value || shape === Shape.array) throw wrongType;
    rows.removeField(row, ...word(args, 2));
  }, Action.delete),
  score: write((rows, args) => {
    rows.putScore(container(rows, args, Shape.ranked), ...word(args, 2), args.float(3));
  }),
  push: write((rows, args) => {
    rows.push(container(rows, args, Shape.array), args.is(2, 'HEAD'), ...word(args, 3));
  }),
  pop: write((rows, args) => {
    rows.pop(existing(rows, args, Shape.array), args.is(2, 'HEAD'));
  }),
  element: write((rows, args) => {
    const row = existing(rows, args, Shape.array);
    rows.setElement(row, args.integer(2) % rows.count(row), ...word(args, 3));
  }),
  insert: write((rows, args) => {
    const row = existing(rows, args, Shape.array);
    rows.insertElement(row, args.integer(2) % (rows.count(row) + 1), ...word(args, 3));
  }),
  remove: write((rows, args) => {
    const row = existing(rows, args, Shape.array);
    const index = args.integer(2) % rows.count(row);
    rows.removeElements(row, index, Math.min(args.integer(3), rows.count(row) - index));
  }),
  drop: write((rows, args) => rows.drop(existing(rows, args)), Action.delete),
  expire: write((rows, args) => {
    rows.setExpireAt(existing(rows, args), args.integer(2));
  }),
  rename: write((rows, args) => {
    rows.rename(existing(rows, args), ...word(args, 2));
  }),
  clear: write((rows) => rows.clear(), Action.delete),
  swap: write((rows, args) => rows.swapTables(args.integer(1), args.integer(2))),
  /** Two writes to two rows, then a failure. */
  stumble: write((rows, args) => {
    put(rows, args);
    const row = rows.create(Buffer.from('stumbled'), 0, 8, Shape.set);
    rows.putField(row, ...word(args, 2), ...empty);
    throw new CommandError('ERR stumbled');
  }),
  /** As BLPOP: no answer when there is nothing. */
  take: {
    action: Action.update,
    run(rows, args, reply) {
      const row = find(rows, args);
      if (row === 0) return;
      rows.drop(row);
      reply.ok();
    },
  },
};

/** Parses a line into a command: a verb, mostly a key, and arguments. */
/** The words of a line, with spaces between them. */
export function wordsOf(line: string): Arguments {
  const words = line.split(' ');
  const args = new Arguments();
  args.reserve(words.length);
  args.buf = Buffer.from(line, 'latin1');
  let at = 0;
  for (const text of words) {
    args.starts[args.count] = at;
    args.lens[args.count++] = text.length;
    at += text.length + 1;
  }
  return args;
}

export function commandOf(line: string, table: number): Command {
  const args = wordsOf(line);
  const name = args.latin1(0);
  const verb = verbs[name];
  if (verb === undefined) throw new Error(`no verb ${name}`);
  const { action, run, grows } = verb;
  return { action, name, transform: run, grows: grows === true, table, span, args };
}

export interface FixtureOptions extends Partial<PodOptions> {
  /** By table number; table 0 has no rules when this is left out. */
  rules?: Record<number, Partial<TableRules>>;
  seed?: number;
  capacityBytes?: number;
  ballastBytes?: number;
}

export class PodFixture {
  readonly clock = new TestClock();
  readonly tables = new Map<number, TableRules>();
  /** Reports of the pod. */
  readonly reports: string[] = [];
  /** The table that lines go to. */
  table = 0;
  disk: FaultyDisk;
  engine!: Engine;
  log!: LocalGroup;
  pod!: Pod;
  readonly #options: FixtureOptions;

  static async open(options: FixtureOptions = {}): Promise<PodFixture> {
    const fixture = new PodFixture(options);
    await fixture.#open();
    return fixture;
  }

  private constructor(options: FixtureOptions) {
    this.#options = options;
    const rng = seededRng(options.seed ?? 1);
    this.disk = new FaultyDisk({ rng, capacityBytes: options.capacityBytes ?? Infinity });
    for (const [table, rules] of Object.entries(options.rules ?? { 0: {} })) {
      this.tables.set(Number(table), { ...noRules, ...rules });
    }
  }

  async #open(): Promise<void> {
    this.engine = this.#options.engine ?? new MemoryEngine();
    this.log = await this.#openLog(this.engine);
    this.pod = new Pod({
      engine: this.engine,
      log: this.log,
      tables: this.#options.tables ?? this.tables,
      clock: this.clock,
      rng: this.disk.rng,
      maxMemoryBytes: Infinity,
      checkpointBytes: Infinity,
      report: (level, message) => this.reports.push(`${level}: ${message}`),
      flows: this.#options.flows,
      admission: this.#options.admission,
    });
  }

  #openLog(engine: Engine): Promise<LocalGroup> {
    const { disk } = this;
    return LocalGroup.open({
      disk,
      directory: '/log',
      fsync: 'always',
      segmentBytes: 64 * 1024,
      ballastBytes: this.#options.ballastBytes ?? 0,
      clock: this.clock,
      rng: this.disk.rng,
      ids: { cluster: 1, pod: 1 },
      group: 1,
      appliedIndex: 0,
      apply: (buf, start, end, index) => applyBatch(engine, buf, start, end, index),
      fatal: (error) => {
        // After a crash the log of the life before still finds its disk gone.
        if (disk === this.disk) this.reports.push(`fatal: ${error.message}`);
      },
    });
  }

  command(line: string, table = this.table): Command {
    return commandOf(line, table);
  }

  /** The answer, which must be at hand. */
  run(line: string, table?: number): string {
    const reply = new TextReply();
    if (this.pod.execute(this.command(line, table), reply) instanceof Promise) {
      throw new Error(`${line} waits`);
    }
    return reply.toString();
  }

  /** The answer, whenever it comes. */
  async later(line: string, table?: number): Promise<string> {
    const reply = new TextReply();
    await this.pod.execute(this.command(line, table), reply);
    return reply.toString();
  }

  runAll(...lines: string[]): string {
    const reply = new TextReply();
    const commands = lines.map((line) => this.command(line));
    if (this.pod.executeAll(commands, reply, () => true) instanceof Promise) {
      throw new Error('the transaction waits');
    }
    return reply.toString();
  }

  /** Ends the tick, and waits until it is safe. */
  async safe(): Promise<void> {
    const position = this.pod.endTick();
    if (position >= 0) {
      await new Promise((resolve) => this.pod.whenSettled(position, resolve));
    }
  }

  /** Cuts the power, and restarts from the log. */
  async crash(): Promise<void> {
    this.disk = this.disk.crash();
    await this.#open();
  }

  /** Everything in the engine, expired rows included. */
  contents(): Promise<EngineContents> {
    return decodeSnapshot(this.engine.exportSnapshot());
  }

  /** Closes in good order, then returns the state after a replay of the whole log. */
  async replayed(): Promise<EngineContents> {
    await this.pod.close();
    const engine = new MemoryEngine();
    const log = await this.#openLog(engine);
    const contents = await decodeSnapshot(engine.exportSnapshot());
    await log.close();
    return contents;
  }
}

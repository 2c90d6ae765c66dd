// The rows of a table as a command sees them. Engines implement it over their own storage; the pod's
// transaction implements it once more around an engine, adding expiry, table properties and the log.
//
// A row is a key with a value of one shape:
//
//   value     bytes                                    Redis strings, bitmaps, HyperLogLogs
//   map       field -> bytes, no order                 hashes
//   set       member, no order                         sets
//   ranked    member -> score, ordered (score, member) sorted sets, geo
//   array     elements by index                        lists
//   stream    a state, and records ordered by key      streams with their consumer groups
//   timed     as a stream; see timed-map.ts            hashes with fields that expire
//
// Bytes come in as (buffer, start, length) and go out through a `Slice` or a visitor. Bytes in a
// slice or passed to a visitor point into the engine and are valid only until the next write or the
// visitor's return. Reads may throw `ReadFault`. A container whose last element goes is dropped
// with it, but for a stream or a timed map, which stays until it is dropped.

import type { Arguments } from './arguments.ts';
import type { Slice } from './bytes.ts';
import type { RowWork } from './row-work.ts';

/** A row handle, valid until its row is dropped; 0 is no row. */
export type Row = number;

export const Shape = {
  none: 0,
  value: 1,
  map: 2,
  set: 3,
  ranked: 4,
  array: 5,
  stream: 6,
  timed: 7,
} as const;
export type Shape = (typeof Shape)[keyof typeof Shape];

/** Sees one field; a truthy answer stops the walk. Members of a set have an empty value. */
export type FieldVisitor = (
  fb: Buffer,
  fs: number,
  fn: number,
  vb: Buffer,
  vs: number,
  vn: number,
) => boolean | void;

/** Sees one member and its score; a truthy answer stops the walk. */
export type RankedVisitor = (b: Buffer, s: number, n: number, score: number) => boolean | void;

/** Sees one element or key; a truthy answer stops the walk. */
export type BytesVisitor = (b: Buffer, s: number, n: number) => boolean | void;

export interface ScoreRange {
  min: number;
  minExclusive: boolean;
  max: number;
  maxExclusive: boolean;
}

/** A bound of `undefined` is open: before the first, or after the last member. */
export interface LexRange {
  min: Uint8Array | undefined;
  minExclusive: boolean;
  max: Uint8Array | undefined;
  maxExclusive: boolean;
}

/** Rows of any shape. */
interface KeyReads {
  /** The row under a key, or 0. */
  find(b: Buffer, s: number, n: number): Row;
  /** Rows in this table. Expired rows count until they are removed. */
  rowCount(): number;
  key(row: Row, out: Slice): void;
  /** `Shape.none` for 0. */
  shape(row: Row): Shape;
  /** Elements of a container, bytes of a value, records of a stream; 0 for a row just dropped. */
  count(row: Row): number;
  /** Milliseconds since 1970 at which the row ceases to be; 0 for never. */
  expireAt(row: Row): number;
  /** Bytes of memory or disk the row takes, overheads included; an estimate. */
  footprint(row: Row): number;
  /**
   * Walks rows from `cursor` (0 at first), looking at about `budget`, and returns the cursor to continue
   * from, 0 at the end. A row that is there all along is seen at least once. Cursors are below 2^53.
   */
  scan(cursor: number, budget: number, visit: (row: Row) => void): number;
  /** A row picked by `random` in [0, 1), 0 when there is none. */
  anyRow(random: number): Row;
}

interface ValueReads {
  value(row: Row, out: Slice): void;
}

/** Maps and sets; of ranked rows the members without their scores. */
interface FieldReads {
  /** Whether a map or set has the field, or a ranked row the member; its value if `out` is given. */
  field(row: Row, b: Buffer, s: number, n: number, out?: Slice): boolean;
  /** The `index`th field, 0 <= index < count, in an order that holds until the next write. */
  fieldAt(row: Row, index: number, field: Slice, value: Slice): void;
  eachField(row: Row, visit: FieldVisitor): void;
  /**
   * Walks fields of a map or set, or members of a ranked row (then with no value), from `cursor`
   * (0 at first), about `budget` of them, and returns the cursor to continue from, 0 at the end. A field
   * that is there from the first call to the last is seen at least once. Cursors are below 2^53.
   */
  scanFields(row: Row, cursor: number, budget: number, visit: FieldVisitor): number;
}

interface RankedReads {
  /** NaN when there is no such member. */
  score(row: Row, b: Buffer, s: number, n: number): number;
  /** Position in ascending order, or -1. */
  rank(row: Row, b: Buffer, s: number, n: number): number;
  /** `count` members from the one at `from` in the walk's own direction: 0 is the greatest if `reverse`. */
  eachByRank(row: Row, from: number, count: number, reverse: boolean, visit: RankedVisitor): void;
  eachByScore(
    row: Row,
    range: ScoreRange,
    reverse: boolean,
    offset: number,
    limit: number,
    visit: RankedVisitor,
  ): void;
  countByScore(row: Row, range: ScoreRange): number;
  /** Presumes that all scores are equal, as ZRANGEBYLEX does. */
  eachByLex(
    row: Row,
    range: LexRange,
    reverse: boolean,
    offset: number,
    limit: number,
    visit: RankedVisitor,
  ): void;
  countByLex(row: Row, range: LexRange): number;
}

interface ArrayReads {
  /** False when `index` is outside 0 <= index < count. */
  element(row: Row, index: number, out: Slice): boolean;
  /** Elements from `from`, towards the head if `reverse`, until `count` were seen or the end. */
  eachElement(row: Row, from: number, count: number, reverse: boolean, visit: BytesVisitor): void;
}

/** Behind the keys of all records, which begin with a smaller byte. */
export const endOfRecords: Buffer = Buffer.of(0xff);

/** Records in the byte order of their keys; `emptyBytes` is before all of them, `endOfRecords` behind. */
interface StreamReads {
  /** The row's own bytes: few, for each change writes all of them. */
  streamState(row: Row, out: Slice): void;
  /** Whether there is a record under the key; its value if `out` is given. */
  streamRecord(row: Row, b: Buffer, s: number, n: number, out?: Slice): boolean;
  /**
   * Walks records with from <= key < to, from the last one down if `reverse`. About `want` of them are
   * expected to be visited, so that an engine on disk reads no more.
   */
  eachStreamRecord(
    row: Row,
    from: Buffer,
    to: Buffer,
    reverse: boolean,
    want: number,
    visit: FieldVisitor,
  ): void;
}

export interface RowReads
  extends KeyReads,
    ValueReads,
    FieldReads,
    RankedReads,
    ArrayReads,
    StreamReads {}

interface ValueWrites {
  /** Replaces the row by a value; its expiry becomes `expireAt`. The row may point at other memory of the same table. */
  putValue(
    b: Buffer,
    s: number,
    n: number,
    vb: Buffer,
    vs: number,
    vn: number,
    expireAt: number,
  ): Row;
  /** As `putValue` of so many bytes, which `fillValue` writes before the command does anything else with its table. */
  reserveValue(b: Buffer, s: number, n: number, bytes: number, expireAt: number): Row;
  /** Writes bytes of the value that was reserved last, from `offset` on, within its size. */
  fillValue(offset: number, vb: Buffer, vs: number, vn: number): void;
  /** Overwrites bytes of a value from `offset`, extending it, with zeros in any gap. */
  patchValue(row: Row, offset: number, vb: Buffer, vs: number, vn: number): void;
}

/** Rows of any shape. */
interface KeyWrites {
  /** Replaces the row by an empty container, to be filled in the same command. */
  create(b: Buffer, s: number, n: number, shape: Shape): Row;
  drop(row: Row): void;
  setExpireAt(row: Row, expireAt: number): void;
  /** Moves the row to another key of the same table, replacing any row there. Same expiry. */
  rename(row: Row, b: Buffer, s: number, n: number): Row;
  /** Drops every row of the table. Returns at once; memory is reclaimed at leisure. */
  clear(): void;
}

/** Writes on maps and sets, and removal of members of ranked rows. */
interface FieldWrites {
  /** Sets a field of a map, or adds a member to a set (no value); true if it is new. */
  putField(
    row: Row,
    fb: Buffer,
    fs: number,
    fn: number,
    vb: Buffer,
    vs: number,
    vn: number,
  ): boolean;
  /** Removes a field, or a member of a set or a ranked row; false if there was none. */
  removeField(row: Row, b: Buffer, s: number, n: number): boolean;
}

interface RankedWrites {
  /** Sets a member's score; true if the member is new. The score is never NaN; -0 is stored as 0. */
  putScore(row: Row, b: Buffer, s: number, n: number, score: number): boolean;
}

interface ArrayWrites {
  push(row: Row, atHead: boolean, b: Buffer, s: number, n: number): void;
  pop(row: Row, atHead: boolean): void;
  setElement(row: Row, index: number, b: Buffer, s: number, n: number): void;
  /** Puts an element before the one at `index`; `index` may be the count. */
  insertElement(row: Row, index: number, b: Buffer, s: number, n: number): void;
  removeElements(row: Row, index: number, count: number): void;
}

/** The first three do not read existing records: the caller must know whether a key is new. */
interface StreamWrites {
  setStreamState(row: Row, b: Buffer, s: number, n: number): void;
  /** Puts a record under a key that has none. */
  addStreamRecord(
    row: Row,
    kb: Buffer,
    ks: number,
    kn: number,
    vb: Buffer,
    vs: number,
    vn: number,
  ): void;
  /** Replaces the value of a record that is there. */
  setStreamRecord(
    row: Row,
    kb: Buffer,
    ks: number,
    kn: number,
    vb: Buffer,
    vs: number,
    vn: number,
  ): void;
  /** False if there was none. */
  removeStreamRecord(row: Row, b: Buffer, s: number, n: number): boolean;
  /** Removes records with from <= key < to; returns how many there were. */
  removeStreamRecords(row: Row, from: Buffer, to: Buffer): number;
}

export interface RowWrites
  extends KeyWrites,
    ValueWrites,
    FieldWrites,
    RankedWrites,
    ArrayWrites,
    StreamWrites {}

/** When a row was used last, or how often it is. */
export interface RowUse {
  readonly idleMs?: number;
  /** 0 to 255, as Redis counts. */
  readonly frequency?: number;
}

/** A point of the running command. */
export interface ChangeMark {
  /** Bytes of its log records before it. */
  readonly logged: number;
}

/** Changes of the running command, which can be undone while the command runs. */
export interface RowChanges {
  /** Sets a mark: later changes can be undone back to it, until `keep`. Marks may be nested. */
  mark(): ChangeMark;
  /** Undoes the changes since the mark, and drops their pending reports. Row handles and later marks become invalid. */
  undo(mark: ChangeMark): void;
  /** None of the changes will be undone. A command that has set a mark calls it at its end, however it ends. */
  keep(): void;
  /** Passes on the log records since the mark. */
  records(mark: ChangeMark, to: BytesVisitor): void;
  /** The command's work since the mark, with the bytes of its log records. */
  work(mark: ChangeMark): RowWork;
}

/**
 * Environment of a running command: the rows of the current table, the clock and random numbers.
 * Tables are numbered within the command's span; other tables are not accessible.
 */
export interface Rows extends RowReads, RowWrites {
  /** Current time in milliseconds since 1970. Constant during one command. */
  readonly now: number;
  /**
   * Uniform in [0, 1). A command's random choice is in the records it writes, so replicas agree.
   */
  random(): number;
  /** The table all calls go to from here on in this command; the command begins on its own. */
  useTable(table: number): void;
  readonly table: number;
  /** How many tables a client can name (Redis: databases). */
  readonly tableCount: number;
  /** Whether the table is kept where this command runs; `useTable` refuses one that is not. */
  hasTable(table: number): boolean;
  swapTables(a: number, b: number): void;
  /**
   * Says which rows will be looked at, so that an engine on disk reads them in one go. Keys are
   * `args[first], args[first + step] ... args[last]` of the running command.
   */
  expect(first: number, last: number, step: number): void;
  /** Makes `expect` refer to the words of `args`, because a script runs another command. */
  useArguments(args: Arguments): void;
  /** Adds a `Change` to the report of the row changed last, one that its records do not show. */
  note?(change: number): void;
  /** Milliseconds since the row was last used; 0 where the engine does not track use. */
  idleMs?(row: Row): number;
  /**
   * Sets when or how often the row was last used, as Redis counts; ignored where the engine does
   * not track use.
   */
  setUse?(row: Row, use: RowUse): void;
  /** Use frequency as Redis counts it; undefined where the engine does not track it. */
  frequency?(row: Row): number | undefined;
  /** Adds steps of a script to the command's work: loop iterations, calls and the like. */
  addScriptSteps(steps: number): void;
  /** Absent where a test runs commands without a pod. */
  readonly changes?: RowChanges;
}

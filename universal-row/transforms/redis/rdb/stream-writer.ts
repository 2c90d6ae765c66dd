// A stream in the RDB format of Redis 7.0: listpacks of entries, and the groups behind them.

import { equalBytes, Slice } from '../../../bytes.ts';
import type { Row, Rows } from '../../../rows.ts';
import { step, type Steps } from '../../../steps.ts';
import { Unpacked } from '../stream-bytes.ts';
import { StreamId } from '../stream-id.ts';
import {
  allEntries,
  allGroups,
  consumerNames,
  edgeId,
  findNames,
  PendingEntry,
  pendingOfConsumer,
  pendingOfGroup,
  StreamConsumer,
  StreamGroup,
  StreamState,
} from '../stream-layout.ts';
import { ByteList } from '../support/byte-list.ts';
import { eachRecordInSteps, type Undo } from '../support/long-walks.ts';
import { RdbType } from './format.ts';
import { ListpackWriter } from './listpack-writer.ts';
import { EntryFlag, idBytes } from './stream-reader.ts';
import type { ValueWriter } from './value-writer.ts';

/** As stream-node-max-entries and stream-node-max-bytes have it. */
const nodeEntries = 100;
const nodeBytes = 4096;
/** Where a listpack has the number of its entries, in one byte. */
const countAt = 6;

const big = (high: number, low: number): bigint => (BigInt(high) << 32n) | BigInt(low);

/** The listpacks of a stream's entries. */
class StreamNodes implements Undo {
  readonly #writer: ValueWriter;
  readonly #countAt: number;
  readonly #node = new ListpackWriter();
  readonly #common: Buffer[];
  /** Names and values of the entry, in turns. */
  readonly #words = new ByteList();
  /** Names of the first entry of the node. */
  readonly #names = new ByteList();
  readonly #first = new StreamId();
  readonly #content = new Unpacked();
  #entries = 0;
  #count = 0;
  #countAtMark = 0;

  constructor(writer: ValueWriter, common: Buffer[]) {
    this.#writer = writer;
    this.#common = common;
    this.#countAt = writer.length;
    writer.wideCount(0);
  }

  add(id: StreamId, content: Slice): void {
    const node = this.#node;
    if (this.#entries === nodeEntries || node.length + content.n >= nodeBytes) this.#flush();
    this.#unpack(content);
    const words = this.#words;
    if (this.#entries === 0) this.#begin(id);
    const isSame = this.#hasSameNames();
    node.integer(BigInt(isSame ? EntryFlag.sameFields : 0));
    // As Redis has it: the difference of unsigned numbers, taken for a signed one.
    const first = this.#first;
    node.integer(BigInt.asIntN(64, big(id.msHigh, id.msLow) - big(first.msHigh, first.msLow)));
    node.integer(BigInt.asIntN(64, big(id.seqHigh, id.seqLow) - big(first.seqHigh, first.seqLow)));
    if (!isSame) node.integer(BigInt(words.count / 2));
    for (let i = isSame ? 1 : 0; i < words.count; i += isSame ? 2 : 1) {
      node.add(words.buf, words.start(i), words.length(i));
    }
    node.integer(BigInt(isSame ? words.count / 2 + 3 : words.count + 4));
    this.#entries++;
  }

  finish(): void {
    this.#flush();
    this.#writer.setWideCount(this.#countAt, this.#count);
  }

  mark(): number {
    this.#flush();
    this.#countAtMark = this.#count;
    return this.#writer.length;
  }

  rollback(mark: number): void {
    this.#node.clear();
    this.#entries = 0;
    this.#count = this.#countAtMark;
    this.#writer.length = mark;
  }

  #unpack(content: Slice): void {
    const from = this.#content.open(content);
    const words = this.#words;
    words.clear();
    const isCommon = from.b[from.at++] === 1;
    const fields = isCommon ? this.#common.length : from.varint();
    for (let i = 0; i < fields; i++) {
      if (isCommon) words.add(this.#common[i]!, 0, this.#common[i]!.length);
      else {
        from.bytes();
        words.add(from.b, from.start, from.length);
      }
      from.bytes();
      words.add(from.b, from.start, from.length);
    }
  }

  /** The head of a node, with the names of its first entry. */
  #begin(id: StreamId): void {
    const node = this.#node;
    const words = this.#words;
    this.#first.set(id);
    this.#names.clear();
    node.integer(0n);
    node.integer(0n);
    node.integer(BigInt(words.count / 2));
    for (let i = 0; i < words.count; i += 2) {
      this.#names.add(words.buf, words.start(i), words.length(i));
      node.add(words.buf, words.start(i), words.length(i));
    }
    node.integer(0n);
  }

  #hasSameNames(): boolean {
    const words = this.#words;
    const names = this.#names;
    if (names.count * 2 !== words.count) return false;
    for (let i = 0; i < names.count; i++) {
      const at = words.start(2 * i);
      const n = words.length(2 * i);
      if (!equalBytes(names.buf, names.start(i), names.length(i), words.buf, at, n)) return false;
    }
    return true;
  }

  #flush(): void {
    if (this.#entries === 0) return;
    const node = this.#node;
    node.finish();
    node.buf[countAt] = this.#entries;
    this.#writer.count(idBytes);
    writeRawId(this.#writer, this.#first);
    this.#writer.string(node.buf, 0, node.length);
    node.clear();
    this.#entries = 0;
    this.#count++;
  }
}

function writeRawId(writer: ValueWriter, id: StreamId): void {
  writer.reserve(idBytes);
  const { buf } = writer;
  let at = buf.writeUInt32BE(id.msHigh, writer.length);
  at = buf.writeUInt32BE(id.msLow, at);
  at = buf.writeUInt32BE(id.seqHigh, at);
  writer.length = buf.writeUInt32BE(id.seqLow, at);
}

function writeId(writer: ValueWriter, id: StreamId): void {
  writer.hugeCount(id.msHigh, id.msLow);
  writer.hugeCount(id.seqHigh, id.seqLow);
}

function writeCounter(writer: ValueWriter, value: number): void {
  if (value < 0) writer.hugeCount(0xffffffff, 0xffffffff);
  else writer.hugeCount(Math.floor(value / 2 ** 32), value % 2 ** 32);
}

/** Writes the stream that `find` finds, type and all. */
export function* writeStream(rows: Rows, find: () => Row, writer: ValueWriter): Steps {
  const common = yield* step(() => commonNames(rows, find()));
  writer.byte(RdbType.stream2);
  const nodes = new StreamNodes(writer, common);
  const id = new StreamId();
  const content = new Slice();
  const { from, to, prefix } = allEntries;
  yield* eachRecordInSteps(
    rows,
    find,
    from,
    to,
    (kb, ks, _, vb, vs, vn) => {
      id.read(kb, ks + prefix);
      content.set(vb, vs, vn);
      nodes.add(id, content);
    },
    nodes,
  );
  nodes.finish();
  yield* step(() => writeState(rows, find(), writer));
  yield* writeGroups(rows, find, writer);
}

function commonNames(rows: Rows, row: Row): Buffer[] {
  const record = new Slice();
  const names: Buffer[] = [];
  if (!findNames(rows, row, record)) return names;
  const known = new Unpacked().open(record);
  for (let left = known.varint(); left > 0; left--) {
    known.bytes();
    names.push(Buffer.from(known.b.subarray(known.start, known.start + known.length)));
  }
  return names;
}

function writeState(rows: Rows, row: Row, writer: ValueWriter): void {
  const state = new StreamState();
  const first = new StreamId();
  state.load(rows, row);
  edgeId(rows, row, false, first);
  writeCounter(writer, state.length);
  writeId(writer, state.last);
  writeId(writer, first);
  writeId(writer, state.maxDeleted);
  writeCounter(writer, state.entriesAdded);
}

function undoOf(writer: ValueWriter): Undo {
  return {
    mark: () => writer.length,
    rollback(mark) {
      writer.length = mark;
    },
  };
}

function* writeGroups(rows: Rows, find: () => Row, writer: ValueWriter): Steps {
  const names = new ByteList();
  const { from, to, prefix } = allGroups;
  const addName = (b: Buffer, s: number, n: number): void => names.add(b, s + prefix, n - prefix);
  yield* eachRecordInSteps(rows, find, from, to, addName, names);
  writer.count(names.count);
  const group = new StreamGroup();
  for (let i = 0; i < names.count; i++) {
    yield* step(() => group.find(rows, find(), names.buf, names.start(i), names.length(i)));
    writer.string(names.buf, names.start(i), names.length(i));
    writeId(writer, group.last);
    writeCounter(writer, group.entriesRead);
    writer.count(group.pending);
    yield* writePending(rows, find, writer, group.number);
    yield* writeConsumers(rows, find, writer, group);
  }
}

function* writePending(rows: Rows, find: () => Row, writer: ValueWriter, group: number): Steps {
  const { from, to, prefix } = pendingOfGroup(group);
  const id = new StreamId();
  const value = new Slice();
  const pending = new PendingEntry();
  yield* eachRecordInSteps(
    rows,
    find,
    from,
    to,
    (kb, ks, _, vb, vs, vn) => {
      id.read(kb, ks + prefix);
      value.set(vb, vs, vn);
      pending.read(value);
      writeRawId(writer, id);
      writer.milliseconds(pending.delivered);
      writeCounter(writer, pending.deliveries);
    },
    undoOf(writer),
  );
}

function* writeConsumers(
  rows: Rows,
  find: () => Row,
  writer: ValueWriter,
  group: StreamGroup,
): Steps {
  // In the order of their names, as Redis has them.
  const numbers = new ByteList();
  const names = consumerNames(group.number);
  yield* eachRecordInSteps(
    rows,
    find,
    names.from,
    names.to,
    (_kb, _ks, _kn, vb, vs, vn) => numbers.add(vb, vs, vn),
    numbers,
  );
  writer.count(numbers.count);
  const consumer = new StreamConsumer();
  const id = new StreamId();
  for (let i = 0; i < numbers.count; i++) {
    const number = numbers.buf.readUInt32BE(numbers.start(i));
    yield* step(() => consumer.load(rows, find(), group.number, number));
    writer.string(consumer.name, 0, consumer.name.length);
    writer.milliseconds(consumer.seen);
    writer.count(consumer.pending);
    const { from, to, prefix } = pendingOfConsumer(group.number, number);
    const write = (kb: Buffer, ks: number): void => {
      id.read(kb, ks + prefix);
      writeRawId(writer, id);
    };
    yield* eachRecordInSteps(rows, find, from, to, write, undoOf(writer));
  }
}

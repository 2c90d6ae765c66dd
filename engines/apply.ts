// Applies a record batch to an engine: on recovery, on a follower, and when a snapshot is loaded.

import { RecordBatchReader, Op } from '../universal-row/record-batch.ts';
import type { Shape } from '../universal-row/rows.ts';
import { emptyBytes } from '../universal-row/bytes.ts';
import { localGroup } from './applied-indexes.ts';
import type { Engine, RowTable } from './engine.ts';

/** Engine methods that operations modify. */
type RowTarget = Pick<Engine, 'table' | 'swapTables'>;

/** Applies the ops in `buf[start, end)` as log entry `index`. One already applied does nothing. */
export function applyBatch(
  engine: Engine,
  buf: Buffer,
  start: number,
  end: number,
  index: number,
  group = localGroup,
): void {
  if (index <= engine.appliedIndexOf(group)) return;
  applyOps(engine, buf, start, end);
  engine.commit(index, group);
}

/** Applies the ops without an index: the inner step of `applyBatch` and of a snapshot import. */
export function applyOps(engine: RowTarget, buf: Buffer, start: number, end: number): void {
  const r = new RecordBatchReader(buf, start, end);
  let table: RowTable | undefined;
  let row = 0;
  // The current row's key, for `create`.
  let ks = 0;
  let kn = 0;
  while (r.pos < end) {
    const op = r.byte();
    switch (op) {
      case Op.row:
        table = engine.table(r.varint());
        r.bytes();
        ks = r.start;
        kn = r.length;
        row = table.find(buf, ks, kn);
        break;
      case Op.value:
      case Op.valueForever: {
        const into = engine.table(r.varint());
        r.bytes();
        ks = r.start;
        kn = r.length;
        const expireAt = op === Op.value ? r.double() : 0;
        r.bytes();
        table = into;
        row = into.putValue(buf, ks, kn, buf, r.start, r.length, expireAt);
        break;
      }
      case Op.create:
        row = known(table).create(buf, ks, kn, r.byte() as Shape);
        break;
      case Op.drop:
        if (row !== 0) known(table).drop(row);
        row = 0;
        break;
      case Op.expire:
        known(table).setExpireAt(row, r.double());
        break;
      case Op.rename:
        r.bytes();
        ks = r.start;
        kn = r.length;
        row = known(table).rename(row, buf, ks, kn);
        break;
      case Op.patch: {
        const offset = r.varint();
        r.bytes();
        known(table).patchValue(row, offset, buf, r.start, r.length);
        break;
      }
      case Op.field: {
        r.bytes();
        const fs = r.start;
        const fn = r.length;
        r.bytes();
        known(table).putField(row, buf, fs, fn, buf, r.start, r.length);
        break;
      }
      case Op.member:
        r.bytes();
        known(table).putField(row, buf, r.start, r.length, emptyBytes, 0, 0);
        break;
      case Op.unfield:
        r.bytes();
        known(table).removeField(row, buf, r.start, r.length);
        break;
      case Op.score: {
        const score = r.double();
        r.bytes();
        known(table).putScore(row, buf, r.start, r.length, score);
        break;
      }
      case Op.head:
      case Op.tail:
        r.bytes();
        known(table).push(row, op === Op.head, buf, r.start, r.length);
        break;
      case Op.unhead:
      case Op.untail:
        known(table).pop(row, op === Op.unhead);
        break;
      case Op.element: {
        const index = r.varint();
        r.bytes();
        known(table).setElement(row, index, buf, r.start, r.length);
        break;
      }
      case Op.insert: {
        const index = r.varint();
        r.bytes();
        known(table).insertElement(row, index, buf, r.start, r.length);
        break;
      }
      case Op.remove:
        known(table).removeElements(row, r.varint(), r.varint());
        break;
      case Op.streamState:
        r.bytes();
        known(table).setStreamState(row, buf, r.start, r.length);
        break;
      case Op.streamAdd:
      case Op.streamSet: {
        r.bytes();
        const rs = r.start;
        const rn = r.length;
        r.bytes();
        if (op === Op.streamAdd) {
          known(table).addStreamRecord(row, buf, rs, rn, buf, r.start, r.length);
        } else {
          known(table).setStreamRecord(row, buf, rs, rn, buf, r.start, r.length);
        }
        break;
      }
      case Op.streamRemove:
        r.bytes();
        known(table).removeStreamRecord(row, buf, r.start, r.length);
        break;
      case Op.streamCut: {
        r.bytes();
        const from = buf.subarray(r.start, r.start + r.length);
        r.bytes();
        known(table).removeStreamRecords(row, from, buf.subarray(r.start, r.start + r.length));
        break;
      }
      case Op.clear:
        engine.table(r.varint()).clear();
        table = undefined;
        row = 0;
        break;
      case Op.swap:
        engine.swapTables(r.varint(), r.varint());
        table = undefined;
        row = 0;
        break;
      default:
        throw new RangeError(`record batch: unknown op ${op} at ${r.pos - 1}`);
    }
  }
}

function known(table: RowTable | undefined): RowTable {
  if (table === undefined) throw new RangeError('record batch: an op before its row');
  return table;
}

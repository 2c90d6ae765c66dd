// When two rows are the same row: fields, members and columns in any order, numbers bit by bit (so NaN
// is NaN and -0 is not 0), a number never a bigint.

import { compareScalars, encodeScalars } from './key-order.ts';
import type { Column, DocumentValue, RowValue, URow } from './row.ts';
import type { Scalar } from './scalar.ts';

export function sameScalar(a: Scalar, b: Scalar): boolean {
  return compareScalars(a, b) === 0;
}

export function sameRow(a: URow, b: URow): boolean {
  return (
    a.key.hash === b.key.hash &&
    sameList(a.key.partition, b.key.partition, sameScalar) &&
    sameList(a.key.range, b.key.range, sameScalar) &&
    a.attrs.version === b.attrs.version &&
    a.attrs.ts === b.attrs.ts &&
    a.attrs.expireAt === b.attrs.expireAt &&
    sameValue(a.value, b.value)
  );
}

function sameValue(a: RowValue, b: RowValue): boolean {
  if (a.kind === 'primitive' && b.kind === 'primitive') return sameScalar(a.value, b.value);
  if (a.kind === 'map' && b.kind === 'map') return samePairs(a.entries, b.entries);
  if (a.kind === 'set' && b.kind === 'set') {
    return samePairs(
      a.members.map((member) => [member, null]),
      b.members.map((member) => [member, null]),
    );
  }
  if (a.kind === 'ranked' && b.kind === 'ranked') return samePairs(a.members, b.members);
  if (a.kind === 'array' && b.kind === 'array') {
    return sameList(a.elements, b.elements, sameScalar);
  }
  if (a.kind === 'stream' && b.kind === 'stream') {
    return sameScalar(a.state, b.state) && sameList(a.records.flat(), b.records.flat(), sameScalar);
  }
  if (a.kind === 'columns' && b.kind === 'columns') {
    return sameFields(a.columns, b.columns, sameColumn);
  }
  if (a.kind === 'document' && b.kind === 'document') return sameDocument(a.root, b.root);
  return false;
}

function samePairs(
  a: readonly (readonly [Scalar, Scalar])[],
  b: readonly (readonly [Scalar, Scalar])[],
): boolean {
  if (a.length !== b.length) return false;
  const values = new Map(a.map(([field, value]) => [nameOf(field), value]));
  return b.every(([field, value]) => {
    const other = values.get(nameOf(field));
    return other !== undefined && sameScalar(other, value);
  });
}

/** A string that only this scalar has. */
export function nameOf(scalar: Scalar): string {
  return encodeScalars([scalar]).toString('latin1');
}

function sameList<T>(a: readonly T[], b: readonly T[], same: (x: T, y: T) => boolean): boolean {
  return a.length === b.length && a.every((item, i) => same(item, b[i]!));
}

function sameFields<T>(
  a: ReadonlyMap<string, T>,
  b: ReadonlyMap<string, T>,
  same: (x: T, y: T) => boolean,
): boolean {
  if (a.size !== b.size) return false;
  for (const [name, item] of a) {
    const other = b.get(name);
    if (other === undefined || !same(item, other)) return false;
  }
  return true;
}

export function sameColumn(a: Column, b: Column): boolean {
  return a.type === b.type && sameList<Scalar>([...a.values], [...b.values], sameScalar);
}

export function sameDocument(a: DocumentValue, b: DocumentValue): boolean {
  if (isList(a)) return isList(b) && sameList(a, b, sameDocument);
  if (a instanceof Map) return b instanceof Map && sameFields(a, b, sameDocument);
  return !isList(b) && !(b instanceof Map) && sameScalar(a as Scalar, b as Scalar);
}

function isList(value: DocumentValue): value is readonly DocumentValue[] {
  return Array.isArray(value);
}

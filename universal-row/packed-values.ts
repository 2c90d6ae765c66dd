// Flat values (a primitive, or a container of scalars) as packed scalars. Records store them, and codecs embed them where
// their own formats would repeat an index or a name for each element.
//
//   primitive   scalar
//   map         count v, (field, value)*
//   set         count v, member*
//   ranked      count v, (member, score f64)*
//   array       count v, element*
//   stream      state, count v, (key, value)*

import type { PackedReader, PackedWriter } from './packed-scalars.ts';
import type { Container, Primitive } from './row.ts';
import type { Scalar } from './scalar.ts';

export type FlatValue = Primitive | Container;
type FlatKind = FlatValue['kind'];

/** Kinds by their number in stored bytes. Only ever added to. */
export const flatKinds = [
  'primitive',
  'map',
  'set',
  'ranked',
  'array',
  'stream',
] as const satisfies readonly FlatKind[];

export function packValue(writer: PackedWriter, value: FlatValue): void {
  switch (value.kind) {
    case 'primitive':
      return writer.scalar(value.value);
    case 'map':
      writer.varint(value.entries.length);
      for (const [field, fieldValue] of value.entries) {
        writer.scalar(field);
        writer.scalar(fieldValue);
      }
      return;
    case 'set':
      return writer.scalars(value.members);
    case 'ranked':
      writer.varint(value.members.length);
      for (const [member, score] of value.members) {
        writer.scalar(member);
        writer.double(score);
      }
      return;
    case 'array':
      return writer.scalars(value.elements);
    case 'stream':
      writer.scalar(value.state);
      writer.varint(value.records.length);
      for (const [key, item] of value.records) {
        writer.scalar(key);
        writer.scalar(item);
      }
      return;
  }
}

/** Throws `RangeError` as `PackedReader` does. */
export function unpackValue(reader: PackedReader, kind: FlatKind): FlatValue {
  switch (kind) {
    case 'primitive':
      return { kind, value: reader.scalar() };
    case 'map': {
      const entries: [Scalar, Scalar][] = [];
      for (let left = reader.count(2); left > 0; left--) {
        entries.push([reader.scalar(), reader.scalar()]);
      }
      return { kind, entries };
    }
    case 'set':
      return { kind, members: reader.scalars() };
    case 'ranked': {
      const members: [Scalar, number][] = [];
      for (let left = reader.count(9); left > 0; left--) {
        members.push([reader.scalar(), reader.double()]);
      }
      return { kind, members };
    }
    case 'array':
      return { kind, elements: reader.scalars() };
    case 'stream': {
      const state = reader.scalar();
      const records: [Scalar, Scalar][] = [];
      for (let left = reader.count(2); left > 0; left--) {
        records.push([reader.scalar(), reader.scalar()]);
      }
      return { kind, state, records };
    }
  }
}

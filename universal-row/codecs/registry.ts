// Every codec by the byte that its rows begin with.

import type { URow } from '../row.ts';
import { bsonCodec } from './bson.ts';
import { CodecError, type RowCodec } from './codec.ts';
import { flexBuffersCodec } from './flexbuffers.ts';

export const codecs: readonly RowCodec[] = [bsonCodec, flexBuffersCodec];

/** Decodes a row by whichever codec wrote it. Throws `CodecError`. */
export function decodeRow(bytes: Uint8Array): URow {
  const codec = codecs.find((candidate) => candidate.tag === bytes[0]);
  if (codec === undefined) throw new CodecError(`no codec writes rows that begin with ${bytes[0]}`);
  return codec.decode(bytes);
}

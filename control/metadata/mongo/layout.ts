// Layout of the store in a MongoDB database: a log of its writes, and periodic checkpoints of all
// documents.
//
//   log          one document a write, whole, by its first revision: 0000000000000001, …
//   checkpoints  one document for each checkpoint, by its revision
//   chunks       contents of checkpoints, in pieces
//   store        the format
//
// The only requirement is that of two inserts of the same _id one fails, which holds for every
// server of MongoDB's protocol, with transactions or without. A write is one insert, at the
// position after the last write its author knows: once it exists, all its changes are made. A
// writer that lost the race for the position reads on and tries again. No second step is needed, so
// a crash leaves nothing undone. A checkpoint counts once its document exists, which is inserted
// after its chunks. The log up to it is then dropped, except for the part that followers may still
// need.

import type { DocumentChange, Json, StoredDocument } from '../document-store.ts';

export const formatVersion = 1;

export interface ChangeRecord {
  collection: string;
  id: string;
  /** As JSON text, which keeps any name and number as it is; missing when the document was removed. */
  body?: string;
}

/** Without changes it holds a place, and with it a revision, that must not be taken any more. */
export interface LogRecord {
  /** The revision of the first change, 16 digits. */
  _id: string;
  /** Tells this write from every other. */
  write: string;
  /** The revision of the last change. */
  last: number;
  /** Milliseconds since 1970, by the writer's clock. Informational. */
  at: number;
  changes: ChangeRecord[];
}

export interface CheckpointRecord {
  /** The last revision that is taken, 16 digits. */
  _id: string;
  /** Revision of the last change. */
  revision: number;
  /** Its chunks are `<name>/0`, `<name>/1`, … */
  name: string;
  chunks: number;
  /** The last write that is in it, and its place. */
  write: string;
  place: string;
  at: number;
}

export interface ChunkRecord {
  _id: string;
  documents: (ChangeRecord & { revision: number })[];
}

export interface StoreRecord {
  _id: 'format';
  version: number;
}

export function placeOf(revision: number): string {
  return String(revision).padStart(16, '0');
}

export function revisionOf(place: string): number {
  return Number(place);
}

export function changesOf({ _id, changes }: LogRecord): DocumentChange[] {
  const first = revisionOf(_id);
  return changes.map(({ collection, id, body }, i) => {
    return { revision: first + i, collection, id, body: parseBody(body) };
  });
}

export function toDocument(record: ChunkRecord['documents'][number]): StoredDocument {
  const { collection, id, revision, body } = record;
  return { collection, id, revision, body: parseBody(body)! };
}

function parseBody(text: string | undefined): Json | undefined {
  return text === undefined ? undefined : (JSON.parse(text) as Json);
}

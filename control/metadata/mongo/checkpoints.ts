// All documents as of one revision, so that a start need not read the whole history.

import { randomUUID } from 'node:crypto';
import type { Snapshot, StoredDocument } from '../document-store.ts';
import type { Connection } from './connection.ts';
import type { Deadline } from './deadline.ts';
import { isDuplicate } from './failures.ts';
import { type CheckpointRecord, type ChunkRecord, placeOf, toDocument } from './layout.ts';

const chunkBytes = 4 * 1024 * 1024;
const chunkDocuments = 2000;

export class Checkpoints {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  async newest(deadline: Deadline): Promise<CheckpointRecord | undefined> {
    // There are one or two; not every server is good at finding the last.
    const all = await deadline.run((options) =>
      this.#connection.collections.checkpoints.find({}, options).toArray(),
    );
    return all.sort((a, b) => (a._id < b._id ? 1 : -1))[0];
  }

  /** undefined if it has been dropped meanwhile, for a newer one. */
  async read(
    { name, chunks }: CheckpointRecord,
    deadline: Deadline,
  ): Promise<StoredDocument[] | undefined> {
    const documents: StoredDocument[] = [];
    for (let i = 0; i < chunks; i++) {
      const key = { _id: `${name}/${i}` };
      const chunk = await deadline.run((options) =>
        this.#connection.collections.chunks.findOne(key, options),
      );
      if (chunk === null) return undefined;
      for (const record of chunk.documents) documents.push(toDocument(record));
    }
    return documents;
  }

  /** `position` is the last revision that is taken, by the write `last`. */
  async write(
    { revision, documents }: Snapshot,
    position: number,
    last: { place: string; write: string },
    deadline: () => Deadline,
  ): Promise<void> {
    const _id = placeOf(position);
    const name = `${_id}/${randomUUID().slice(0, 8)}`;
    let chunks = 0;
    for (const some of inChunks(documents)) {
      const chunk = { _id: `${name}/${chunks++}`, documents: some };
      await deadline().run((options) =>
        this.#connection.collections.chunks.insertOne(chunk, options),
      );
    }
    try {
      const record = { _id, revision, name, chunks, ...last, at: Date.now() };
      await deadline().run((options) =>
        this.#connection.collections.checkpoints.insertOne(record, options),
      );
    } catch (error) {
      // Another store has made the same. Ours goes with the next one.
      if (!isDuplicate(error)) throw error;
      return;
    }
    // Older checkpoints, and leftovers of unfinished ones.
    const older = { _id: { $lt: _id } };
    await deadline().run((options) =>
      this.#connection.collections.checkpoints.deleteMany(older, options),
    );
    await deadline().run((options) =>
      this.#connection.collections.chunks.deleteMany(older, options),
    );
  }
}

function* inChunks(documents: readonly StoredDocument[]): Generator<ChunkRecord['documents']> {
  let chunk: ChunkRecord['documents'] = [];
  let bytes = 0;
  for (const { collection, id, revision, body } of documents) {
    const text = JSON.stringify(body);
    if (chunk.length === chunkDocuments || (chunk.length > 0 && bytes + text.length > chunkBytes)) {
      yield chunk;
      chunk = [];
      bytes = 0;
    }
    chunk.push({ collection, id, revision, body: text });
    bytes += text.length;
  }
  if (chunk.length > 0) yield chunk;
}

// A state as a stream of bytes, for a replica that is too far behind:
//
//   record = u32 LE bytes of the head | head, JSON | the text of a document
//
// The first record's head is the state's, without a text. Each other one is a document. The chunks
// of the stream are cut anywhere.

import { DocumentState } from './document-state.ts';
import type { StateHead, StoredText } from './document-state.ts';

const formatVersion = 1;
const chunkBytes = 512 * 1024;
const maxHeadBytes = 16 * 1024 * 1024;

type DocumentHead = [collection: string, id: string, revision: number, bytes: number];

/** Both arguments must stay as they are until the end. */
export async function* encodeState(
  head: StateHead,
  documents: readonly StoredText[],
): AsyncGenerator<Uint8Array> {
  let parts = [record({ version: formatVersion, documents: documents.length, ...head })];
  let bytes = parts[0]!.length;
  for (const { collection, id, revision, text } of documents) {
    const body = Buffer.from(text);
    const part = record([collection, id, revision, body.length] satisfies DocumentHead);
    parts.push(part, body);
    bytes += part.length + body.length;
    if (bytes < chunkBytes) continue;
    yield* inChunks(Buffer.concat(parts));
    parts = [];
    bytes = 0;
    await new Promise(setImmediate);
  }
  if (bytes > 0) yield* inChunks(Buffer.concat(parts));
}

function* inChunks(bytes: Buffer): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes);
}

function record(head: object): Buffer {
  const text = Buffer.from(JSON.stringify(head));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(text.length);
  return Buffer.concat([length, text]);
}

/** Rejects when the stream is not one of `encodeState`, or ends too early. */
export async function decodeState(chunks: AsyncIterable<Uint8Array>): Promise<DocumentState> {
  const source = new ByteSource(chunks);
  const { version, documents, ...head } = (await source.head()) as StateHead & {
    version: number;
    documents: number;
  };
  if (version !== formatVersion) throw new Error(`a state of the metadata in format ${version}`);
  const state = new DocumentState(head);
  for (let i = 0; i < documents; i++) {
    const [collection, id, revision, bytes] = (await source.head()) as DocumentHead;
    const text = (await source.take(bytes)).toString();
    state.put({ collection, id, revision, text });
  }
  return state;
}

class ByteSource {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #held: Buffer = Buffer.alloc(0);

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#chunks = chunks[Symbol.asyncIterator]();
  }

  async head(): Promise<unknown> {
    const length = (await this.take(4)).readUInt32LE(0);
    if (length > maxHeadBytes) throw new Error('a state of the metadata is damaged');
    return JSON.parse((await this.take(length)).toString());
  }

  async take(bytes: number): Promise<Buffer> {
    if (this.#held.length < bytes) await this.#fill(bytes);
    const taken = this.#held.subarray(0, bytes);
    this.#held = this.#held.subarray(bytes);
    return taken;
  }

  async #fill(bytes: number): Promise<void> {
    const parts = [this.#held];
    let length = this.#held.length;
    while (length < bytes) {
      const { value, done } = await this.#chunks.next();
      if (done) throw new Error('a state of the metadata ends too early');
      // The chunks may be immediately available: other work of the event loop runs between them.
      await new Promise(setImmediate);
      const chunk: Uint8Array = value;
      parts.push(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length));
      length += chunk.length;
    }
    this.#held = Buffer.concat(parts);
  }
}

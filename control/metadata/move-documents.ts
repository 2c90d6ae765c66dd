// Copies all documents of one store to another, for a change of the setting `metadata`. It can be interrupted at any
// point and started again.

import { encodeBodies, maxWriteBytes } from './document-checks.ts';
import type { DocumentStore, DocumentWrite, StoredDocument } from './document-store.ts';

/** There from the first write to the last. */
const mark = { collection: 'store', id: 'moving' } as const;
const documentsPerWrite = 1000;

/** A store that was being filled, and is not whole. */
export async function isBeingFilled(store: DocumentStore): Promise<boolean> {
  return (await store.get(mark.collection, mark.id)) !== undefined;
}

/** Afterwards `to` holds these documents and no others. */
export async function fillStore(
  to: DocumentStore,
  documents: readonly StoredDocument[],
): Promise<void> {
  const there = new Map<string, StoredDocument>();
  for (const document of (await to.snapshot()).documents) there.set(nameOf(document), document);
  const marked = there.get(nameOf(mark))?.revision ?? 0;
  const [revision] = await to.write([{ ...mark, body: {}, expected: marked }]);
  there.delete(nameOf(mark));
  const wanted = documents.filter((document) => nameOf(document) !== nameOf(mark));
  const writes = wanted.map(({ collection, id, body }): DocumentWrite => {
    const expected = there.get(nameOf({ collection, id }))?.revision ?? 0;
    there.delete(nameOf({ collection, id }));
    return { collection, id, body, expected };
  });
  for (const { collection, id, revision: expected } of there.values()) {
    writes.push({ collection, id, body: undefined, expected });
  }
  for (const part of inParts(writes)) await to.write(part);
  await to.write([{ ...mark, body: undefined, expected: revision! }]);
}

function* inParts(writes: readonly DocumentWrite[]): Generator<DocumentWrite[]> {
  let part: DocumentWrite[] = [];
  let bytes = 0;
  for (const write of writes) {
    const size = Buffer.byteLength(encodeBodies([write])[0] ?? '');
    if (part.length === documentsPerWrite || (part.length > 0 && bytes + size > maxWriteBytes)) {
      yield part;
      part = [];
      bytes = 0;
    }
    part.push(write);
    bytes += size;
  }
  if (part.length > 0) yield part;
}

function nameOf({ collection, id }: { collection: string; id: string }): string {
  return `${collection}/${id}`;
}

// Numbers of partitions, each given out once in the life of the metadata.

import { endOfPartitions, firstPartition } from '../../contracts/partition-map.ts';
import { type DocumentStore, RevisionConflict } from './document-store.ts';
import { TableError } from './table-rules.ts';

const document = { collection: 'counters', id: 'partitions' };
const mostAttempts = 100;

export class PartitionNumbers {
  readonly #store: DocumentStore;

  constructor(store: DocumentStore) {
    this.#store = store;
  }

  /** Ascending. They are used up even if nothing comes of them. */
  async take(count: number): Promise<number[]> {
    for (let attempt = 1; ; attempt++) {
      const found = await this.#store.get(document.collection, document.id);
      const { next } = (found?.body ?? { next: firstPartition }) as { next: number };
      if (next + count > endOfPartitions) {
        throw new TableError('conflict', 'there are no numbers left for partitions');
      }
      try {
        const body = { next: next + count };
        await this.#store.write([{ ...document, body, expected: found?.revision ?? 0 }]);
      } catch (error) {
        // Another server has taken some.
        if (!(error instanceof RevisionConflict) || attempt === mostAttempts) throw error;
        continue;
      }
      return Array.from({ length: count }, (_, i) => next + i);
    }
  }
}

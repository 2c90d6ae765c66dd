// Bytes copied, by database.

import type { CopiedPoints } from '../background-work.ts';

export class BytesByDatabase {
  readonly #bytes = new Map<string, number>();

  add(database: string, bytes: number): void {
    if (bytes === 0) return;
    this.#bytes.set(database, (this.#bytes.get(database) ?? 0) + bytes);
  }

  all(): CopiedPoints[] {
    return [...this.#bytes].map(([database, bytes]) => ({ database, bytes }));
  }
}

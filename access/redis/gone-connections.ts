// Closed connections that wait to be cleaned up. A cleanup takes time, more if the connection waited for many keys,
// and thousands may close at once. So they are cleaned up in slices.

import { sharedSlices } from './shared-slices.ts';

const sliceMs = 4;

interface Gone {
  dispose(): void;
}

export class GoneConnections {
  #queue: Gone[] = [];

  get waiting(): number {
    return this.#queue.length;
  }

  add(connection: Gone): void {
    this.#queue.push(connection);
    if (this.#queue.length === 1) sharedSlices.add(this.#slice);
  }

  readonly #slice = (): void => {
    const began = performance.now();
    const queue = this.#queue;
    let done = 0;
    try {
      do queue[done++]!.dispose();
      while (done < queue.length && performance.now() - began < sliceMs);
    } finally {
      this.#queue = queue.slice(done);
      if (this.#queue.length > 0) sharedSlices.add(this.#slice);
    }
  };
}

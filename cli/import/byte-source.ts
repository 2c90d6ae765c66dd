// Bytes that come in chunks, read from one buffer that holds the unread rest.

/** The bytes ended in the middle of something. */
export class SourceEnded extends Error {
  override readonly name = 'SourceEnded';
}

const waitMs = 50;

export class ByteSource {
  /** Unread bytes are from `at` to `end`. */
  b: Buffer;
  at = 0;
  end: number;
  /** Bytes taken since the start. */
  position: number;
  readonly #chunks: AsyncIterator<Buffer>;
  /** Whether `b` is no chunk, so that more may be put behind its end. */
  #isOwn = false;
  #wanted = 0;
  #coming: Promise<IteratorResult<Buffer>> | undefined;

  constructor(chunks: AsyncIterator<Buffer>, first: Buffer = Buffer.alloc(0), position = 0) {
    this.#chunks = chunks;
    this.b = first;
    this.end = first.length;
    this.position = position;
  }

  get left(): number {
    return this.end - this.at;
  }

  /** Marks the bytes before this point as consumed. */
  take(n: number): void {
    this.at += n;
    this.position += n;
    this.#wanted = 0;
  }

  /**
   * Waits for more bytes: after each call without a `take` in between for twice as many, so that a
   * large item is not scanned again for every chunk, but not if none come for a while. False at the
   * end.
   */
  async more(): Promise<boolean> {
    const { left } = this;
    this.#wanted = Math.max(left + 1, this.#wanted * 2);
    while (this.left < this.#wanted) {
      const result = await this.#nextChunk(this.left > left);
      if (result === 'late') return true;
      if (result === 'end') return this.left > left;
    }
    return true;
  }

  /** At least `n` bytes. Throws `SourceEnded` when there are fewer. */
  async need(n: number): Promise<void> {
    while (this.left < n) {
      if ((await this.#nextChunk(false)) === 'end') throw new SourceEnded('the data ends early');
    }
  }

  async #nextChunk(mayBeLate: boolean): Promise<'added' | 'end' | 'late'> {
    this.#coming ??= this.#chunks.next();
    const coming = this.#coming;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<undefined>((resolve) => {
      if (mayBeLate) timer = setTimeout(() => resolve(undefined), waitMs);
    });
    const next = await (mayBeLate ? Promise.race([coming, late]) : coming);
    clearTimeout(timer);
    if (next === undefined) return 'late';
    this.#coming = undefined;
    if (next.done === true) return 'end';
    this.#add(next.value);
    return 'added';
  }

  #add(chunk: Buffer): void {
    const { left } = this;
    if (left === 0) {
      this.b = chunk;
      this.#isOwn = false;
      this.at = 0;
      this.end = chunk.length;
      return;
    }
    if (this.end + chunk.length > this.b.length || !this.#isOwn) {
      const to = Buffer.allocUnsafe(Math.max(2 * left, left + chunk.length));
      this.b.copy(to, 0, this.at, this.end);
      this.b = to;
      this.#isOwn = true;
      this.at = 0;
      this.end = left;
    }
    chunk.copy(this.b, this.end);
    this.end += chunk.length;
  }
}

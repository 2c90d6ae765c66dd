// Finds the ends of RESP replies in a stream, and whether each is an error; contents are ignored.

const newline = 10;
const minus = 45;
const dollar = 36;
const star = 42;
const zero = 48;

/** `error` is the line of one that is an error. */
type OnReply = (error: string | undefined) => void;

export class ReplyReader {
  readonly #onReply: OnReply;
  /** The beginning of an incomplete line. */
  #rest: Buffer | undefined;
  /** Bytes of a bulk string that are still to come, its line's end included. */
  #skip = 0;
  /** Elements of the current reply that are still to come, if it is an array. */
  #left = 0;

  constructor(onReply: OnReply) {
    this.#onReply = onReply;
  }

  read(chunk: Buffer): void {
    let bytes = chunk;
    if (this.#rest !== undefined) {
      bytes = Buffer.concat([this.#rest, chunk]);
      this.#rest = undefined;
    }
    let at = 0;
    while (at < bytes.length) {
      if (this.#skip > 0) {
        const skipped = Math.min(this.#skip, bytes.length - at);
        this.#skip -= skipped;
        at += skipped;
        if (this.#skip === 0) this.#element(undefined);
        continue;
      }
      const end = bytes.indexOf(newline, at);
      if (end < 0) {
        this.#rest = Buffer.from(bytes.subarray(at));
        return;
      }
      this.#line(bytes, at, end);
      at = end + 1;
    }
  }

  #line(bytes: Buffer, at: number, end: number): void {
    const type = bytes[at];
    if (type === minus) this.#element(bytes.toString('latin1', at + 1, end - 1));
    else if (type === dollar || type === star) {
      const length = lengthOf(bytes, at + 1, end - 1);
      if (type === dollar && length >= 0) this.#skip = length + 2;
      else if (type === star && length > 0) this.#left = length + Math.max(1, this.#left) - 1;
      else this.#element(undefined);
    } else this.#element(undefined);
  }

  #element(error: string | undefined): void {
    if (this.#left > 0 && --this.#left > 0) return;
    this.#onReply(error);
  }
}

/** -1 for none. */
function lengthOf(bytes: Buffer, from: number, end: number): number {
  if (bytes[from] === minus) return -1;
  let length = 0;
  for (let i = from; i < end; i++) length = length * 10 + bytes[i]! - zero;
  return length;
}

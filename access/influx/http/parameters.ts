// Parameters of a request, out of its URL and, for /query, out of its form. An empty one is as good as none.

import { HttpError } from './http-error.ts';

/** More parameters than this in a URL or a form are refused; a request needs about ten. */
export const maxParameters = 1000;

export class Parameters {
  readonly #values = new Map<string, string>();
  #isOverfull = false;

  /** The first of a name counts. */
  constructor(query: string) {
    this.add(query);
  }

  /** There were more than `maxParameters`: those behind them were not read. */
  get isOverfull(): boolean {
    return this.#isOverfull;
  }

  /** More of them, urlencoded. Those that are there already stay. */
  add(encoded: string): void {
    const seen = new Set<string>();
    for (const [name, value] of this.#pairs(encoded)) {
      this.#put(decode(name), decode(value), seen, false);
    }
  }

  /** Those of a form go first. A long one is decoded some kilobytes in each round of the event loop, and in place. */
  async addForm(body: Buffer): Promise<void> {
    const seen = new Set<string>();
    // Nothing of the protocol but the values themselves is beyond ASCII before it is decoded.
    for (const [name, value] of this.#pairs(body.toString('latin1'))) {
      this.#put(await decodeInSlices(name), await decodeInSlices(value), seen, true);
    }
  }

  /** Names and values as they came; the first `maxParameters`. */
  *#pairs(encoded: string): Generator<[name: string, value: string]> {
    let count = 0;
    for (let start = 0; start < encoded.length; ) {
      const found = encoded.indexOf('&', start);
      const end = found < 0 ? encoded.length : found;
      const part = encoded.slice(start, end);
      start = end + 1;
      if (part === '') continue;
      if (++count > maxParameters) {
        this.#isOverfull = true;
        return;
      }
      const equals = part.indexOf('=');
      yield equals < 0 ? [part, ''] : [part.slice(0, equals), part.slice(equals + 1)];
    }
  }

  #put(name: string, value: string, seen: Set<string>, isStronger: boolean): void {
    if (seen.has(name) || value === '') return;
    seen.add(name);
    if (isStronger || !this.#values.has(name)) this.#values.set(name, value);
  }

  set(name: string, value: string): void {
    if (value !== '') this.#values.set(name, value);
  }

  /** '' when absent. */
  get(name: string): string {
    return this.#values.get(name) ?? '';
  }
}

export function tooManyParameters(): HttpError {
  return new HttpError(400, `more than ${maxParameters} parameters`);
}

/** Bytes of a text that are decoded in one step: a fraction of a millisecond. */
const sliceBytes = 64 * 1024;

/** Bytes that are no UTF-8 become U+FFFD, and a stray percent sign stays one. */
function decode(text: string): string {
  if (!mustDecode(text)) return text;
  const decoder = new Decoder(Buffer.from(text));
  decoder.step(Infinity);
  return decoder.text;
}

/** As `decode`, of a text whose characters are bytes. */
async function decodeInSlices(text: string): Promise<string> {
  const decoder = new Decoder(Buffer.from(text, 'latin1'));
  while (!decoder.step(sliceBytes)) await new Promise(setImmediate);
  return decoder.text;
}

function mustDecode(text: string): boolean {
  return text.includes('%') || text.includes('+');
}

/** Decodes in place, as that never lengthens a text. `decodeURIComponent` takes 60 ns a character, ten times as long. */
class Decoder {
  readonly #bytes: Buffer;
  #at = 0;
  #length = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** Decodes so many bytes more; true at the end. */
  step(bytes: number): boolean {
    const b = this.#bytes;
    const end = Math.min(b.length, this.#at + bytes);
    let i = this.#at;
    let length = this.#length;
    for (; i < end; i++) {
      let c = b[i]!;
      if (c === plus) c = space;
      else if (c === percent) {
        const high = hexDigit(b[i + 1]);
        const low = hexDigit(b[i + 2]);
        if (high >= 0 && low >= 0) {
          c = high * 16 + low;
          i += 2;
        }
      }
      b[length++] = c;
    }
    this.#at = i;
    this.#length = length;
    return i >= b.length;
  }

  get text(): string {
    return this.#bytes.toString('utf8', 0, this.#length);
  }
}

const plus = 0x2b;
const space = 0x20;
const percent = 0x25;

function hexDigit(c: number | undefined): number {
  if (c === undefined) return -1;
  if (c >= 0x30 && c <= 0x39) return c - 0x30;
  const lower = c | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x61 + 10 : -1;
}

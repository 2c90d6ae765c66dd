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

  /** More of them, urlencoded. Those that are there already stay, unless they are `stronger`. */
  add(encoded: string, stronger = false): void {
    const seen = new Set<string>();
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
      const name = decode(equals < 0 ? part : part.slice(0, equals));
      const value = equals < 0 ? '' : decode(part.slice(equals + 1));
      if (seen.has(name) || value === '') continue;
      seen.add(name);
      if (stronger || !this.#values.has(name)) this.#values.set(name, value);
    }
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

/** Bytes that are no UTF-8 become U+FFFD, and a stray percent sign stays one. */
function decode(text: string): string {
  const spaced = text.includes('+') ? text.replaceAll('+', ' ') : text;
  if (!spaced.includes('%')) return spaced;
  try {
    return decodeURIComponent(spaced);
  } catch {
    return decodeLeniently(Buffer.from(spaced));
  }
}

/** In place, as decoding never lengthens the text. */
function decodeLeniently(bytes: Buffer): string {
  let length = 0;
  for (let i = 0; i < bytes.length; i++) {
    let c = bytes[i]!;
    if (c === percent) {
      const high = hexDigit(bytes[i + 1]);
      const low = hexDigit(bytes[i + 2]);
      if (high >= 0 && low >= 0) {
        c = high * 16 + low;
        i += 2;
      }
    }
    bytes[length++] = c;
  }
  return bytes.toString('utf8', 0, length);
}

const percent = 0x25;

function hexDigit(c: number | undefined): number {
  if (c === undefined) return -1;
  if (c >= 0x30 && c <= 0x39) return c - 0x30;
  const lower = c | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x61 + 10 : -1;
}

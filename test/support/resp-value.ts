// RESP as a tree: enough of it to compare replies of two servers exactly, and to print them.

export type RespValue =
  /** `+ - : , # ( _`: a line; `$` and `=`: bytes, as latin1. */
  | { type: '+' | '-' | ':' | ',' | '#' | '(' | '_' | '$' | '='; text: string }
  /** `$-1` and `*-1`. */
  | { type: 'nil' | 'nil array' }
  /** Elements in order; of a map, keys and values by turns. */
  | { type: '*' | '~' | '%' | '>' | '|'; items: RespValue[] };

/** Takes replies out of a stream of bytes. */
export class RespReader {
  #bytes: Buffer = Buffer.alloc(0);
  #at = 0;
  // After an incomplete reply: how many bytes must be there before another try is worth it.
  #want = 0;

  push(chunk: Buffer): void {
    const rest = this.#bytes.subarray(this.#at);
    this.#bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    this.#at = 0;
  }

  /** The next reply, undefined while it is not all there. Bytes that are no reply throw. */
  next(): RespValue | undefined {
    if (this.#bytes.length - this.#at < this.#want) return undefined;
    const start = this.#at;
    const value = this.#read(start);
    if (value === undefined) {
      this.#at = start;
      return undefined;
    }
    this.#want = 0;
    return value;
  }

  get pendingBytes(): number {
    return this.#bytes.length - this.#at;
  }

  #read(start: number): RespValue | undefined {
    const eol = this.#bytes.indexOf('\r\n', this.#at, 'latin1');
    if (eol < 0) return undefined;
    const type = String.fromCharCode(this.#bytes[this.#at]!);
    const line = this.#bytes.toString('latin1', this.#at + 1, eol);
    this.#at = eol + 2;
    switch (type) {
      case '+':
      case '-':
      case ':':
      case ',':
      case '#':
      case '(':
      case '_':
        return { type, text: line };
      case '$':
      case '=': {
        const length = sizeOf(line);
        if (length < 0) return { type: 'nil' };
        const end = this.#at + length;
        if (this.#bytes.length < end + 2) {
          this.#want = end + 2 - start;
          return undefined;
        }
        const text = this.#bytes.toString('latin1', this.#at, end);
        if (this.#bytes.toString('latin1', end, end + 2) !== '\r\n')
          throw new Error('bulk without end');
        this.#at = end + 2;
        return { type, text };
      }
      case '*':
      case '~':
      case '>':
      case '%':
      case '|': {
        const count = sizeOf(line) * (type === '%' || type === '|' ? 2 : 1);
        if (count < 0) return { type: 'nil array' };
        const items: RespValue[] = [];
        while (items.length < count) {
          const item = this.#read(start);
          if (item === undefined) return undefined;
          items.push(item);
        }
        return { type, items };
      }
      default:
        throw new Error(`not a reply: ${show({ type: '$', text: type + line.slice(0, 100) })}`);
    }
  }
}

function sizeOf(line: string): number {
  if (!/^(-1|\d+)$/.test(line)) throw new Error(`not a length: ${line}`);
  return Number(line);
}

/** One line, every byte visible, the type at its head where the text alone would not tell. */
export function show(value: RespValue): string {
  switch (value.type) {
    case '$':
      return JSON.stringify(value.text).replace(/[^ -~]/g, hex);
    case 'nil':
    case 'nil array':
      return `(${value.type})`;
    case '+':
    case '-':
    case ':':
    case ',':
    case '#':
    case '(':
    case '_':
    case '=':
      return (
        value.type +
        JSON.stringify(value.text)
          .slice(1, -1)
          .replace(/[^ -~]/g, hex)
      );
    default:
      return `${value.type}[${value.items.map(show).join(' ')}]`;
  }
}

function hex(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** The bytes or line of a reply that has some; its picture otherwise. */
export function textOf(value: RespValue): string {
  return 'text' in value ? value.text : show(value);
}

export function itemsOf(value: RespValue): RespValue[] {
  if (!('items' in value)) throw new Error(`not an aggregate: ${show(value)}`);
  return value.items;
}

export function isError(value: RespValue): boolean {
  return value.type === '-';
}

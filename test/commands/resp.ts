// RESP both ways for tests: a `Reply` that encodes, and a reader that turns bytes into a line of text.
//
//   OK   "bulk"   (integer) 1   (nil)   (nil array)   (error) ERR x   [..]   {k: v}   set[..]   1.5 (double)

import type { Reply } from '../../universal-row/reply.ts';
import { formatDouble } from '../../universal-row/transforms/redis/support/format-double.ts';

export class TestReply implements Reply {
  version = 2;
  #parts: string[] = [];

  /** Replies since the last call, as text; undefined without any. */
  take(sorted: boolean): string | undefined {
    const bytes = Buffer.from(this.#parts.join(''), 'latin1');
    this.#parts = [];
    return bytes.length === 0 ? undefined : readAll(bytes, sorted);
  }

  ok(): void {
    this.simple('OK');
  }
  simple(text: string): void {
    this.#parts.push(`+${text}\r\n`);
  }
  error(text: string): void {
    this.#parts.push(`-${text}\r\n`);
  }
  integer(value: number): void {
    if (!Number.isSafeInteger(value)) throw new RangeError(`integer ${value}`);
    this.#parts.push(`:${value}\r\n`);
  }
  bigInteger(value: bigint): void {
    this.#parts.push(`:${value}\r\n`);
  }
  bulk(b: Buffer, s: number, n: number): void {
    if (s + n > b.length) throw new RangeError('bulk beyond its buffer');
    this.#parts.push(`$${n}\r\n${b.toString('latin1', s, s + n)}\r\n`);
  }
  bulkHead(n: number): void {
    this.#parts.push(`$${n}\r\n`);
  }
  bulkPart(b: Buffer, s: number, n: number): void {
    this.#parts.push(b.toString('latin1', s, s + n));
  }
  bulkTail(): void {
    this.#parts.push('\r\n');
  }
  text(value: string): void {
    const bytes = Buffer.from(value);
    this.bulk(bytes, 0, bytes.length);
  }
  verbatim(value: string): void {
    if (this.version === 2) return this.text(value);
    const bytes = Buffer.from(`txt:${value}`);
    this.#parts.push(`=${bytes.length}\r\n${bytes.toString('latin1')}\r\n`);
  }
  nil(): void {
    this.#parts.push(this.version === 2 ? '$-1\r\n' : '_\r\n');
  }
  nilArray(): void {
    this.#parts.push(this.version === 2 ? '*-1\r\n' : '_\r\n');
  }
  double(value: number, text = formatDouble(value)): void {
    if (this.version === 2) this.text(text);
    else this.#parts.push(`,${text}\r\n`);
  }
  boolean(value: boolean): void {
    if (this.version === 2) this.integer(value ? 1 : 0);
    else this.#parts.push(value ? '#t\r\n' : '#f\r\n');
  }

  array(count: number): void {
    this.#parts.push(`*${count}\r\n`);
  }
  map(pairs: number): void {
    this.#parts.push(this.version === 2 ? `*${pairs * 2}\r\n` : `%${pairs}\r\n`);
  }
  set(count: number): void {
    this.#parts.push(this.version === 2 ? `*${count}\r\n` : `~${count}\r\n`);
  }

  open(): number {
    return this.#parts.push('') - 1;
  }
  close(mark: number, kind: 'array' | 'set' | 'map', count: number): void {
    const items = this.#parts.splice(mark);
    this[kind](count);
    this.#parts.push(...items);
  }

  mark(): number {
    return this.#parts.length;
  }
  rollback(mark: number): void {
    this.#parts.length = mark;
  }
  fork(mark: number): TestReply {
    const own = new TestReply();
    own.version = this.version;
    own.#parts = this.#parts.splice(mark);
    return own;
  }
}

function readAll(bytes: Buffer, sorted: boolean): string {
  const [text, next] = readReply(bytes, 0, sorted);
  if (next !== bytes.length) throw new Error(`more than one reply: ${bytes.toString('latin1')}`);
  return text;
}

/** The reply at `at` as text, and where the next one begins; a RangeError when it is not all there. */
export function readReply(bytes: Buffer, at: number, sorted = false): [string, number] {
  const eol = bytes.indexOf('\r\n', at, 'latin1');
  if (eol < 0) throw new RangeError('incomplete');
  const type = String.fromCharCode(bytes[at]!);
  const line = bytes.toString('latin1', at + 1, eol);
  const next = eol + 2;
  const count = Number(line);
  switch (type) {
    case '+':
      return [line, next];
    case '-':
      return [`(error) ${line}`, next];
    case ':':
      return [`(integer) ${line}`, next];
    case ',':
      return [`${line} (double)`, next];
    case '#':
      return [`(${line === 't' ? 'true' : 'false'})`, next];
    case '_':
      return ['(nil)', next];
    case '$':
    case '=': {
      if (count < 0) return ['(nil)', next];
      const end = next + count;
      if (end + 2 > bytes.length) throw new RangeError('incomplete');
      const text = quote(bytes.toString('latin1', next, end));
      return [type === '=' ? `${text} (verbatim)` : text, end + 2];
    }
    case '*':
    case '~':
    case '%': {
      if (count < 0) return ['(nil array)', next];
      const items: string[] = [];
      let p = next;
      for (let i = 0; i < count; i++) {
        let item: string;
        [item, p] = readReply(bytes, p);
        if (type === '%') {
          const [value, after] = readReply(bytes, p);
          item = `${item}: ${value}`;
          p = after;
        }
        items.push(item);
      }
      if (sorted) items.sort();
      const inner = items.join(', ');
      if (type === '%') return [`{${inner}}`, p];
      return [`${type === '~' ? 'set' : ''}[${inner}]`, p];
    }
    default:
      throw new Error(`not a reply: ${type}${line}`);
  }
}

function quote(latin1: string): string {
  const escaped = latin1.replace(/[\\"]/g, '\\$&').replace(/[^ -~]/g, (c) => {
    if (c === '\n') return '\\n';
    if (c === '\r') return '\\r';
    return `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`;
  });
  return `"${escaped}"`;
}

/** The words of a command line as redis-cli splits it: "quoted \x00 \n" and 'plain' words too. */
export function splitLine(line: string): Buffer[] {
  const words: Buffer[] = [];
  for (const [, double, single, plain] of line.matchAll(
    /"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|(\S+)/g,
  )) {
    if (double !== undefined) words.push(unescape(double));
    else words.push(Buffer.from(single?.replaceAll("\\'", "'") ?? plain ?? ''));
  }
  return words;
}

function unescape(quoted: string): Buffer {
  const escapes: Record<string, string> = { n: '\n', r: '\r', t: '\t', a: '\x07', b: '\b' };
  const parts = quoted.split(/(\\x[0-9a-fA-F]{2}|\\.)/).map((part) => {
    if (/^\\x..$/.test(part)) return Buffer.from(part.slice(2), 'hex');
    return Buffer.from(part.startsWith('\\') ? (escapes[part[1]!] ?? part[1]!) : part);
  });
  return Buffer.concat(parts);
}

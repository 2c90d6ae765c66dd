// JSON with the commas and, where asked for, the indentation of Go's MarshalIndent.

import { TextBuffer } from './text-buffer.ts';

const comma = 0x2c;
const colon = 0x3a;
const space = 0x20;
const newline = 0x0a;

/** A place to go back to. */
export interface JsonMark {
  length: number;
  takes: number;
  depth: number;
  isFirst: boolean;
}

export class JsonText {
  readonly out = new TextBuffer();
  readonly isPretty: boolean;
  #depth = 0;
  /** The opened array or object is still empty, so the next element takes no comma. */
  #isFirst = true;

  constructor(isPretty: boolean) {
    this.isPretty = isPretty;
  }

  /** Begins an element of an array, or of an object by its `key`. The value is written next. */
  element(key?: string): void {
    const { out } = this;
    if (!this.#isFirst) out.byte(comma);
    this.#isFirst = false;
    if (this.isPretty && this.#depth > 0) this.#breakLine();
    if (key === undefined) return;
    out.quoted(key);
    out.byte(colon);
    if (this.isPretty) out.byte(space);
  }

  /** An array or object, by its first character. */
  open(bracket: '[' | '{'): void {
    this.out.ascii(bracket);
    this.#depth++;
    this.#isFirst = true;
  }

  /** Writes encoded JSON in place of a value that would be opened and closed. */
  value(json: Buffer): void {
    this.out.bytes(json);
    this.#isFirst = false;
  }

  close(bracket: ']' | '}'): void {
    this.#depth--;
    if (this.isPretty && !this.#isFirst) this.#breakLine();
    this.out.ascii(bracket);
    this.#isFirst = false;
  }

  /** A line of its own for each document. */
  endDocument(): void {
    this.out.byte(newline);
    this.#isFirst = true;
  }

  mark(): JsonMark {
    const { length, takes } = this.out;
    return { length, takes, depth: this.#depth, isFirst: this.#isFirst };
  }

  /** False when some of the bytes since have been taken away. */
  rewind(mark: JsonMark): boolean {
    if (mark.takes !== this.out.takes) return false;
    this.out.length = mark.length;
    this.#depth = mark.depth;
    this.#isFirst = mark.isFirst;
    return true;
  }

  #breakLine(): void {
    this.out.byte(newline);
    for (let i = 0; i < this.#depth; i++) this.out.ascii('    ');
  }
}

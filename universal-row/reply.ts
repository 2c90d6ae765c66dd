// Where a command puts its answer. The protocol's writer implements it; a transform never sees the wire.

export interface Reply {
  /** 2 or 3 for Redis: a transform whose answer differs in more than its encoding may look. */
  readonly version: number;

  ok(): void;
  /** A status line of ASCII without line breaks. */
  simple(text: string): void;
  /** `text` starts with its code word, as `ERR syntax error`. */
  error(text: string): void;
  integer(value: number): void;
  bigInteger(value: bigint): void;
  bulk(b: Buffer, s: number, n: number): void;
  /** The same in parts, for a string that is too long for one step: its length, its bytes, its end. */
  bulkHead(n: number): void;
  bulkPart(b: Buffer, s: number, n: number): void;
  bulkTail(): void;
  /** A string as UTF-8 bulk. */
  text(value: string): void;
  /** Text for people (INFO, CLIENT LIST): verbatim in RESP3, bulk in RESP2. */
  verbatim(value: string): void;
  /** A missing value. */
  nil(): void;
  /** A missing array: `*-1` in RESP2, `_` in RESP3. */
  nilArray(): void;
  /** Bulk in RESP2; a double in RESP3. `text` where it is printed with other digits than usual. */
  double(value: number, text?: string): void;
  /** 0 or 1 in RESP2. */
  boolean(value: boolean): void;

  array(count: number): void;
  /** `pairs` keys and values follow; a flat array in RESP2. */
  map(pairs: number): void;
  set(count: number): void;

  /** For an array, set or map whose count is known only after its items: items follow, then `close`. */
  open(): number;
  close(mark: number, kind: 'array' | 'set' | 'map', count: number): void;

  /** A point to go back to with `rollback`, when a command is run again. */
  mark(): number;
  rollback(mark: number): void;
  /**
   * Moves the output since `mark` to a reply of its own, which may become long, and continues
   * there.
   */
  fork(mark: number): Reply;

  /** The output since `mark` in the form of protocol/values.ts. Undefined if it is too long for that, or is not only answers. */
  valuesFrom?(mark: number): Uint8Array | undefined;
}

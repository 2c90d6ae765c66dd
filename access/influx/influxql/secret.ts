// A text that must not get into logs, errors or lists of running queries.

export class Secret {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  /** The text, for code that checks or stores it. */
  reveal(): string {
    return this.#text;
  }

  toString(): string {
    return '[REDACTED]';
  }

  toJSON(): string {
    return this.toString();
  }
}

// A text that must not get into logs, errors or lists of what is running.

export class Secret {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  /** For those who check or store it. */
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

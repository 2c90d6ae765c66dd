// Output of a command: JSON for programs, else text.

import { printableLines } from './values.ts';

interface Shown {
  json?: true;
}

/** Prints `value` as one line of JSON, or formatted by `text`. */
export async function answer<T>(
  { json }: Shown,
  value: T,
  text: (value: T) => string | Promise<string>,
): Promise<void> {
  process.stdout.write(`${json ? safeJson(value) : await text(value)}\n`);
}

/** Control characters that JSON leaves as they are are escaped, too: it may be read on a terminal. */
function safeJson(value: unknown): string {
  return JSON.stringify(value).replaceAll(
    /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/gu,
    (c) => {
      return `\\u${c.codePointAt(0)!.toString(16).padStart(4, '0')}`;
    },
  );
}

/** Something to know beside the answer, which programs that read the answer need not see. */
export function remark(text: string): void {
  process.stderr.write(`${printableLines(text)}\n`);
}

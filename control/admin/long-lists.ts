// Lists are as long as there are tables, tokens and users. A long one is written in pieces, at the client's pace, and other
// requests are served between them.

import { Readable } from 'node:stream';
import { setImmediate as nextTick } from 'node:timers/promises';

/** Items that are written in one step. */
export const itemsAtOnce = 256;

/** The body in pieces, if it is an object with one long list and nothing else. */
export function longList(answer: unknown): Readable | undefined {
  if (typeof answer !== 'object' || answer === null) return undefined;
  const [entry, ...others] = Object.entries(answer);
  if (entry === undefined || others.length > 0) return undefined;
  const [name, items] = entry as [string, unknown];
  if (!Array.isArray(items) || items.length <= itemsAtOnce) return undefined;
  return Readable.from(pieces(name, items), { objectMode: false });
}

async function* pieces(name: string, items: readonly unknown[]): AsyncGenerator<string> {
  for (let at = 0; at < items.length; at += itemsAtOnce) {
    const text = JSON.stringify(items.slice(at, at + itemsAtOnce)).slice(1, -1);
    yield at === 0 ? `{${JSON.stringify(name)}:[${text}` : `,${text}`;
    await nextTick();
  }
  yield ']}';
}

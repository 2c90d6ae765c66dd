// Patterns that are names or lists of names: `host_1`, `^host_1$`, `^(host_1|host_2)$`, `^host`, `_1$`, `.*`. They are
// told apart by their text, so that nothing is compiled for them.

import type { TextMatcher } from '../ast.ts';

/** Longer texts are not looked for with the built-in search, which is not linear for them. */
const maxSearched = 200;

/** undefined when the pattern is more than that. */
export function literalMatcher(source: string): TextMatcher | undefined {
  if (source === '' || source === '.*') return { test: () => true };
  const isStart = source.startsWith('^');
  const isEnd = source.endsWith('$') && !endsEscaped(source);
  const body = source.slice(isStart ? 1 : 0, isEnd ? -1 : undefined);
  const group = /^\((?:\?:)?/.exec(body)?.[0] ?? '';
  if (group !== '') {
    if (!isStart || !isEnd || !body.endsWith(')') || endsEscaped(body)) return undefined;
    const names = namesOf(body.slice(group.length, -1), true);
    if (names === undefined) return undefined;
    const set = new Set(names);
    return { test: (text) => set.has(text) };
  }
  // `.*` at an open end adds nothing.
  const isOpen = !isEnd && body.endsWith('.*') && !endsEscaped(body.slice(0, -1));
  const name = namesOf(isOpen ? body.slice(0, -2) : body, false)?.[0];
  if (name === undefined) return undefined;
  if (isStart && isEnd) return { test: (text) => text === name };
  if (isStart) return { test: (text) => text.startsWith(name) };
  if (isEnd) return { test: (text) => text.endsWith(name) };
  return name.length > maxSearched ? undefined : { test: (text) => text.includes(name) };
}

/** An odd number of backslashes is before the last character. */
function endsEscaped(text: string): boolean {
  let at = text.length - 1;
  while (at > 0 && text[at - 1] === '\\') at--;
  return (text.length - 1 - at) % 2 === 1;
}

const meaningful = new Set('\\^$.|?*+()[]{}');

/** The names between bars; undefined where anything is more than a character. */
function namesOf(text: string, mayHaveBars: boolean): string[] | undefined {
  const names: string[] = [];
  let name = '';
  for (let i = 0; i < text.length; i++) {
    let c = text[i]!;
    if (c === '|' && mayHaveBars) {
      names.push(name);
      name = '';
      continue;
    }
    if (c === '\\') {
      c = text[++i] ?? '';
      // Only of these a backslash makes characters and nothing else.
      if (!/^[!-/:-@[-`{-~]$/.test(c)) return undefined;
    } else if (meaningful.has(c)) return undefined;
    name += c;
  }
  names.push(name);
  return names;
}

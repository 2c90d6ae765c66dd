// The key of a line: its measurement and tags as the client wrote them, in any order. A comma, a space or
// an equals sign behind a backslash belongs to the name; other backslashes are just themselves.

import { compareText, type SeriesName } from '../../../universal-row/series/series-key.ts';

/** Measurement and tags, or the error. `key` ends before the first bare space of its line. */
export function parseLineKey(key: string): SeriesName | string {
  if (key === '' || key.startsWith(',')) return 'missing measurement';
  let at = partEnd(key, 1, ',');
  const measurement = key.slice(0, at).replace(/\\([, ])/g, '$1');
  const tags: [string, string][] = [];
  while (at < key.length) {
    const keyStart = at + 1;
    if (keyStart >= key.length || key[keyStart] === ',' || key[keyStart] === '=') {
      return 'missing tag key';
    }
    const keyEnd = partEnd(key, keyStart + 1, ',=');
    if (key[keyEnd] !== '=') return 'missing tag value';
    const valueStart = keyEnd + 1;
    if (valueStart >= key.length || key[valueStart] === ',') return 'missing tag value';
    at = partEnd(key, valueStart, ',=');
    if (key[at] === '=') return 'invalid tag format';
    tags.push([unescapeTag(key.slice(keyStart, keyEnd)), unescapeTag(key.slice(valueStart, at))]);
  }
  tags.sort((a, b) => compareText(a[0], b[0]));
  for (let i = 1; i < tags.length; i++) {
    if (tags[i]![0] === tags[i - 1]![0]) return 'duplicate tags';
  }
  return { measurement, tags };
}

/** Index of the first of `stops` that no backslash precedes, or the length. */
function partEnd(text: string, start: number, stops: string): number {
  for (let i = start; i < text.length; i++) {
    if (stops.includes(text[i]!) && text[i - 1] !== '\\') return i;
  }
  return text.length;
}

function unescapeTag(text: string): string {
  return text.includes('\\') ? text.replace(/\\([,= ])/g, '$1') : text;
}

/** The name of a field. Quotes may be escaped here as well. */
export function unescapeFieldKey(text: string): string {
  return text.includes('\\') ? text.replace(/\\([,= "])/g, '$1') : text;
}

// Values for `$name` in a query: the JSON object of the parameter `params`.

import { HttpError } from './http-error.ts';

/** Longer texts are refused: JSON is read in one go. */
export const maxParamsLength = 65_536;

/** Integers that a double can't hold come as `bigint`. */
export function readQueryParams(text: string): Readonly<Record<string, unknown>> {
  if (text === '') return {};
  if (text.length > maxParamsLength) throw bad(`more than ${maxParamsLength} characters`);
  let value: unknown;
  try {
    value = JSON.parse(markWide(text), unmark);
  } catch (error) {
    throw bad((error as Error).message);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw bad('not an object');
  }
  return value as Record<string, unknown>;
}

function bad(reason: string): HttpError {
  return new HttpError(400, `error parsing query parameters: ${reason}`);
}

// No bound text begins so.
const mark = '\\u0000wide\\u0000';
const marked = '\0wide\0';
/** So many digits may be more than a double holds. */
const wideDigits = 16;

const quote = 0x22;
const backslash = 0x5c;

/** Wide integers become strings, as the parser of JSON would round them. Reads the text once. */
export function markWide(text: string): string {
  let result = '';
  let copied = 0;
  let at = 0;
  while (at < text.length) {
    const c = text.charCodeAt(at);
    if (c === quote) {
      at = textEnd(text, at + 1);
    } else if (isNumberChar(c)) {
      const start = at;
      while (at < text.length && isNumberChar(text.charCodeAt(at))) at++;
      if (at - start < wideDigits) continue;
      const token = text.slice(start, at);
      if (!/^-?\d{16,}$/.test(token)) continue;
      result += `${text.slice(copied, start)}"${mark}${token}"`;
      copied = at;
    } else at++;
  }
  return result + text.slice(copied);
}

/** Behind the closing quote, or the end of the text. */
function textEnd(text: string, start: number): number {
  let at = start;
  while (at < text.length && text.charCodeAt(at) !== quote) {
    at += text.charCodeAt(at) === backslash ? 2 : 1;
  }
  return at + 1;
}

/** Characters of numbers such as `-12.5e+3`. */
function isNumberChar(c: number): boolean {
  return (
    (c >= 0x30 && c <= 0x39) || c === 0x2d || c === 0x2e || c === 0x2b || c === 0x65 || c === 0x45
  );
}

function unmark(_key: string, value: unknown): unknown {
  if (typeof value !== 'string' || !value.startsWith(marked)) return value;
  const digits = value.slice(marked.length);
  return /^-?\d+$/.test(digits) ? BigInt(digits) : value;
}

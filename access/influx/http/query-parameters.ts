// Values for `$name` in a query: the JSON object of the parameter `params`.

import { HttpError } from './http-error.ts';

/** Integers that a double can't hold come as `bigint`. */
export function readQueryParams(text: string): Readonly<Record<string, unknown>> {
  if (text === '') return {};
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

// No text that anybody binds begins so.
const mark = '\\u0000wide\\u0000';
const marked = '\0wide\0';

/** Wide integers become strings, as the parser of JSON would round them. */
function markWide(text: string): string {
  return text.replace(/"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g, (token) =>
    /^-?\d{16,}$/.test(token) ? `"${mark}${token}"` : token,
  );
}

function unmark(_key: string, value: unknown): unknown {
  if (typeof value !== 'string' || !value.startsWith(marked)) return value;
  const digits = value.slice(marked.length);
  return /^-?\d+$/.test(digits) ? BigInt(digits) : value;
}

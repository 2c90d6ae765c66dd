// Multipart forms, as `curl -F` sends them (RFC 7578). Strict limits on expensive parts: the
// boundary, the head of a part and the number of parts have limits, and the body is searched once.

import { HttpError } from './http-error.ts';
import { maxParameters, tooManyParameters } from './parameters.ts';

/** RFC 2046, section 5.1.1. A search for a text of any length would not be linear. */
const maxBoundary = 70;
const maxHeadBytes = 8 * 1024;
const lineEnd = Buffer.from('\r\n');
const headEnd = Buffer.from('\r\n\r\n');

/**
 * The fields of a form; the content of a file counts as the value of its field, and the first of a name counts. Throws
 * `HttpError` for a form that is not well-formed or is beyond the limits.
 */
export function multipartFields(contentType: string, body: Buffer): Map<string, string> {
  const delimiter = Buffer.from(`\r\n--${boundaryOf(contentType)}`, 'latin1');
  const fields = new Map<string, string>();
  const first = delimiter.subarray(lineEnd.length);
  // Bytes before the first delimiter are ignored.
  let at = body.subarray(0, first.length).equals(first)
    ? first.length
    : after(body.indexOf(delimiter), delimiter);
  for (let parts = 0; at >= 0; parts++) {
    // Two hyphens end the form.
    if (body[at] === 0x2d && body[at + 1] === 0x2d) return fields;
    if (parts >= maxParameters) throw tooManyParameters();
    const end = body.indexOf(delimiter, at);
    const part = body.subarray(at, end < 0 ? body.length : end);
    const head = part.subarray(0, maxHeadBytes).indexOf(headEnd);
    if (end < 0 || head < 0) throw malformed();
    const name = fieldName(part.toString('utf8', 0, head));
    if (name !== undefined && !fields.has(name)) {
      fields.set(name, part.toString('utf8', head + headEnd.length));
    }
    at = after(end, delimiter);
  }
  throw malformed();
}

function boundaryOf(contentType: string): string {
  const found = /;\s*boundary=(?:"([^"]*)"|([^;\s]*))/i.exec(contentType);
  const boundary = found?.[1] ?? found?.[2] ?? '';
  if (boundary === '' || boundary.length > maxBoundary) throw malformed();
  return boundary;
}

function after(index: number, delimiter: Buffer): number {
  return index < 0 ? -1 : index + delimiter.length;
}

function fieldName(head: string): string | undefined {
  for (const line of head.split('\r\n')) {
    if (!/^content-disposition:/i.test(line)) continue;
    return /[;\s]name="([^"]*)"/i.exec(line)?.[1];
  }
  return undefined;
}

function malformed(): HttpError {
  return new HttpError(400, 'error parsing multipart form');
}

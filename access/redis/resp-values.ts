// Answers in RESP as the values that the log and the pod protocol have (universal-row/protocol/values.ts).

import { ValueWriter } from '../../universal-row/protocol/values.ts';

const lineFeed = 10;

/**
 * The answers in the range, which has whole ones only, so that a client of the same RESP version gets the same bytes from them.
 * Undefined if there is anything else, as an out-of-band message.
 */
export function valuesOf(resp: Buffer, start: number, end: number): Uint8Array | undefined {
  const values = new ValueWriter(end - start + 64);
  let at = start;
  while (at < end) {
    const lineEnd = resp.indexOf(lineFeed, at) - 1;
    if (lineEnd < at || lineEnd > end - 2) return undefined;
    const sign = String.fromCharCode(resp[at]!);
    const line = resp.toString('latin1', at + 1, lineEnd);
    at = lineEnd + 2;
    if (sign === '$' || sign === '=') {
      const n = Number(line);
      if (n >= 0) {
        const from = at;
        at += n + 2;
        if (at > end) return undefined;
        if (sign === '$') values.bulk(resp, from, n);
        else values.verbatim(resp.toString('utf8', from + textType.length, from + n));
        continue;
      }
    }
    if (!writeLine(sign, line, values)) return undefined;
  }
  return values.view();
}

/** In front of verbatim text. */
const textType = 'txt:';

/** Writes a value that is one line, or the header of a collection. */
function writeLine(sign: string, line: string, values: ValueWriter): boolean {
  switch (sign) {
    case '+':
      if (line === 'OK') values.ok();
      else values.simple(line);
      return true;
    case '-':
      values.error(line);
      return true;
    case ':':
      if (Number.isSafeInteger(Number(line))) values.integer(Number(line));
      else values.bigInteger(BigInt(line));
      return true;
    case '(':
      values.bigInteger(BigInt(line));
      return true;
    case ',':
      values.double(Number(line), line);
      return true;
    case '#':
      values.boolean(line === 't');
      return true;
    case '_':
    case '$':
      values.nil();
      return true;
    case '*':
      if (line === '-1') values.nilArray();
      else values.array(Number(line));
      return true;
    case '%':
      values.map(Number(line));
      return true;
    case '~':
      values.set(Number(line));
      return true;
    default:
      return false;
  }
}

// Error of a line, with InfluxDB's texts and in InfluxDB's order of checks, because clients and
// users know these texts. Called only for lines that could not be parsed.

import { backslash, comma, dot, equals, isBlank, minus, quote, space, zero } from './characters.ts';
import { NumberReader, notNumber } from './decimal.ts';
import { parseLineKey } from './line-key.ts';
import { booleanLength, maxFields } from './point-reader.ts';
import { keyTooLong } from './series-cache-table.ts';
import { badTime, type TimeReader, timeOutsideRange } from './timestamp.ts';

const outsideRange = 'time outside range -9223372036854775806 - 9223372036854775806';

/**
 * Error of the line from `start`, where its key begins, to the newline at `end`; '' if none. `time`
 * is set to the precision of the request.
 */
export function lineError(
  buf: Buffer,
  start: number,
  end: number,
  maxKeyBytes: number,
  time: TimeReader,
): string {
  let keyEnd = start;
  while (keyEnd < end && (buf[keyEnd] !== space || buf[keyEnd - 1] === backslash)) keyEnd++;
  const key = parseLineKey(buf.toString('utf8', start, keyEnd));
  const keyError = typeof key === 'string' ? key : '';
  if (keyEnd === end && (keyError === '' || keyError === 'duplicate tags')) return 'missing fields';
  if (keyError !== '') return keyError;
  const keyBytes = keyEnd - start;
  if (keyBytes > maxKeyBytes) return keyTooLong(keyBytes, maxKeyBytes);
  const fields = new FieldErrors(buf, skipBlanks(buf, keyEnd, end), end);
  if (fields.error !== '') return fields.error;
  const longest = keyBytes + 4 + fields.longestKey;
  if (longest > maxKeyBytes) return keyTooLong(longest, maxKeyBytes);
  return timeError(buf, skipBlanks(buf, fields.end, end), end, time);
}

/** Goes over the fields that begin at `start`. */
class FieldErrors {
  /** Where the fields end. */
  end: number;
  error: string;
  longestKey = 0;

  constructor(buf: Buffer, start: number, end: number) {
    this.end = start;
    this.error = this.#read(buf, start, end);
  }

  #read(buf: Buffer, start: number, end: number): string {
    let equalsSigns = 0;
    let commas = 0;
    let keyStart = start;
    let i = start;
    while (i < end) {
      const c = buf[i]!;
      const bare = i === start || buf[i - 1] !== backslash;
      if (bare && c === space) break;
      if (bare && c === comma) {
        commas++;
        keyStart = i + 1;
      } else if (bare && c === equals) {
        equalsSigns++;
        if (equalsSigns > maxFields) return `more than ${maxFields} fields`;
        if (i === keyStart) return 'missing field key';
        this.longestKey = Math.max(this.longestKey, i - keyStart);
        const next = buf[i + 1];
        if (i + 1 >= end || next === comma || next === space) return 'missing field value';
        if (next !== quote) {
          const valueEnd = endOfValue(buf, i + 1, end);
          const error = valueError(buf, i + 1, valueEnd);
          if (error !== '') return error;
          i = valueEnd;
          continue;
        }
      } else if (bare && c === quote && equalsSigns > commas) {
        i = endOfText(buf, i + 1, end);
        if (i >= end) return 'unbalanced quotes';
        const next = buf[i + 1];
        if (i + 1 < end && next !== comma && next !== space) return 'invalid field format';
      }
      i++;
    }
    this.end = i;
    // Each field has one equals sign, and a comma is between two of them.
    return equalsSigns === 0 || commas !== equalsSigns - 1 ? 'invalid field format' : '';
  }
}

function endOfValue(buf: Buffer, start: number, end: number): number {
  let i = start;
  while (i < end && buf[i] !== comma && buf[i] !== space) i++;
  return i;
}

/** Index of the closing quote. */
function endOfText(buf: Buffer, start: number, end: number): number {
  let i = start;
  while (i < end && buf[i] !== quote) i += buf[i] === backslash ? 2 : 1;
  return i;
}

const numbers = new NumberReader();

/** Error of a value that is not a string. */
function valueError(buf: Buffer, start: number, end: number): string {
  const c = String.fromCharCode(buf[start]!);
  if (!/[0-9.Nn-]/.test(c)) {
    return booleanLength(buf, start) === end - start ? '' : 'invalid boolean';
  }
  if (numbers.read(buf, start) !== notNumber && numbers.end === end) return '';
  const kind = numberKind(buf, start, end);
  if (kind === 'integer') return outOfRange('integer', 'ParseInt', buf, start, end);
  if (kind === 'unsigned') return outOfRange('unsigned', 'ParseUint', buf, start, end);
  return `invalid ${kind}`;
}

/**
 * Intended kind of an invalid number: a value of only the characters of a float is a float. Reads
 * each byte once, as bad values may be as long as a line.
 */
export function numberKind(
  bytes: ArrayLike<number>,
  start: number,
  end: number,
): 'integer' | 'unsigned' | 'float' | 'number' {
  const first = bytes[start] === minus ? start + 1 : start;
  let digits = 0;
  let points = 0;
  let exponents = 0;
  let previous = 0;
  for (let i = first; i < end; i++) {
    const c = bytes[i]!;
    if (c >= zero && c <= zero + 9) digits++;
    else if (c === dot) points++;
    else if ((c | 0x20) === letterE) exponents++;
    else if ((c === plus || c === minus) && (previous | 0x20) === letterE) {
      // The sign of an exponent.
    } else {
      const isLast = i === end - 1 && digits > 0 && digits === i - first;
      if (isLast && c === letterI) return 'integer';
      if (isLast && c === letterU && first === start) return 'unsigned';
      return 'number';
    }
    previous = c;
  }
  return points <= 1 && (exponents > 0 || digits > 0) ? 'float' : 'number';
}

const letterE = 0x65;
const letterI = 0x69;
const letterU = 0x75;
const plus = 0x2b;

/** Digits of a number that an error quotes. */
const quotedDigits = 256;

function outOfRange(type: string, parser: string, buf: Buffer, start: number, end: number): string {
  const cut = Math.min(end - 1, start + quotedDigits);
  const digits = buf.toString('latin1', start, cut) + (cut < end - 1 ? '...' : '');
  return `unable to parse ${type} ${digits}: strconv.${parser}: parsing "${digits}": value out of range`;
}

function timeError(buf: Buffer, start: number, end: number, time: TimeReader): string {
  if (start >= end) return '';
  const outcome = time.read(buf, start, end + 1);
  if (outcome === badTime) return 'bad timestamp';
  if (outcome === timeOutsideRange) return outsideRange;
  let i = time.end;
  while (i < end && buf[i] === space) i++;
  return i < end ? 'point is invalid' : '';
}

function skipBlanks(buf: Buffer, start: number, end: number): number {
  let i = start;
  while (i < end && isBlank(buf[i]!)) i++;
  return i;
}

// What is wrong with a line, in InfluxDB's words and looked for in InfluxDB's order: clients and their
// users know these texts. Only lines that could not be read come here.

import { backslash, comma, equals, isBlank, quote, space } from './characters.ts';
import { NumberReader, notNumber } from './decimal.ts';
import { parseLineKey } from './line-key.ts';
import { booleanLength } from './point-reader.ts';
import { keyTooLong } from './series-cache-table.ts';
import { badTime, type TimeReader, timeOutsideRange } from './timestamp.ts';

const outsideRange = 'time outside range -9223372036854775806 - 9223372036854775806';

/**
 * What is wrong with the line from `start`, where its key begins, to the newline at `end`; '' if nothing
 * is. `time` is set to the precision of the request.
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

/** What is wrong with a value that is no string. */
function valueError(buf: Buffer, start: number, end: number): string {
  const c = String.fromCharCode(buf[start]!);
  if (!/[0-9.Nn-]/.test(c)) {
    return booleanLength(buf, start) === end - start ? '' : 'invalid boolean';
  }
  const reader = new NumberReader();
  if (reader.read(buf, start) !== notNumber && reader.end === end) return '';
  const text = buf.toString('latin1', start, end);
  if (/^-?[0-9]+i$/.test(text)) return outOfRange('integer', 'ParseInt', text);
  if (/^[0-9]+u$/.test(text)) return outOfRange('unsigned', 'ParseUint', text);
  // All that has the characters of a float, but is none.
  const scientific = /^-?[0-9.eE]*([eE][+-]?[0-9.]*)+$/.test(text);
  const points = text.split('.').length - 1;
  if (points <= 1 && (scientific || /^-?[0-9.]*[0-9][0-9.]*$/.test(text))) return 'invalid float';
  return 'invalid number';
}

function outOfRange(type: string, parser: string, text: string): string {
  const digits = text.slice(0, -1);
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

// Texts that stand for times: '2016-01-01', '2016-01-01 08:30:00.5', '2016-01-01T08:30:00.5+01:00'.

import { fromLocal } from './time-zone.ts';

const nanosPerSecond = 1_000_000_000n;

const dateStart = /^\d{4}-\d{2}-\d{2}(?:.+)?$/s;
const dateTime =
  /^(\d{4})-(\d{2})-(\d{2})(?:([ T])(\d{1,2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?(Z|[+-]\d{2}:\d{2})?)?$/;

/** Whether a string compared with time is meant as one, well-formed or not. */
export function looksLikeTime(text: string): boolean {
  return dateStart.test(text);
}

/**
 * Nanoseconds since 1970; undefined for an invalid time. Without an offset of its own, the text is
 * the time in `zone`, by default UTC.
 */
export function parseTimeLiteral(text: string, zone?: string): bigint | undefined {
  const match = dateTime.exec(text);
  if (match === null) return undefined;
  const [, year, month, day, separator, hour = '0', minute = '0', second = '0', fraction = ''] =
    match;
  const offset = match[9];
  // With a T there must be an offset, with a blank there is none.
  if (separator !== undefined && (separator === 'T') !== (offset !== undefined)) return undefined;
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return undefined;
  const midnight = secondsOfDate(Number(year), Number(month), Number(day));
  if (midnight === undefined) return undefined;
  const shift = offsetSeconds(offset);
  if (shift === undefined) return undefined;

  let seconds = midnight + Number(hour) * 3600 + Number(minute) * 60 + Number(second) - shift;
  if (offset === undefined && zone !== undefined) seconds = fromLocal(zone, seconds);
  const nanos = BigInt(fraction.slice(0, 9).padEnd(9, '0'));
  return BigInt(seconds) * nanosPerSecond + nanos;
}

function secondsOfDate(year: number, month: number, day: number): number | undefined {
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  return date.getUTCMonth() === month - 1 && date.getUTCDate() === day
    ? date.getTime() / 1000
    : undefined;
}

function offsetSeconds(offset: string | undefined): number | undefined {
  if (offset === undefined || offset === 'Z') return 0;
  const hours = Number(offset.slice(1, 3));
  const minutes = Number(offset.slice(4));
  if (hours > 23 || minutes > 59) return undefined;
  return (offset.startsWith('-') ? -1 : 1) * (hours * 3600 + minutes * 60);
}

/** RFC 3339 in UTC, with just the digits it needs. */
export function formatTime(time: bigint): string {
  let nanos = time % nanosPerSecond;
  if (nanos < 0n) nanos += nanosPerSecond;
  const date = new Date(Number((time - nanos) / 1_000_000n));
  const whole = date.toISOString().replace(/\.\d+Z$/, '');
  const fraction = nanos === 0n ? '' : `.${String(nanos).padStart(9, '0').replace(/0+$/, '')}`;
  return `${whole}${fraction}Z`;
}

// Times of an answer as text: RFC 3339 with the digits that are needed, or counted in a unit since 1970.
// A time is a base in Unix seconds and whole nanoseconds after it; nothing here is a bigint.

import type { TextBuffer } from './text-buffer.ts';

type EpochUnit = 'ns' | 'u' | 'ms' | 's' | 'm' | 'h';

/** The value of the `epoch` parameter. An unknown unit counts as nanoseconds, '' as RFC 3339. */
export function epochUnit(text: string): EpochUnit | undefined {
  switch (text) {
    case '':
      return undefined;
    case 'u':
    case 'us':
    case 'µ':
      return 'u';
    case 'ms':
    case 's':
    case 'm':
    case 'h':
      return text;
    default:
      return 'ns';
  }
}

/** Seconds east of UTC at an instant in Unix seconds. */
export type ZoneOffset = (seconds: number) => number;

const secondsPerDay = 86_400;
const noDay = Number.NaN;

/** Writes times. It remembers the day of the last one, as the next is often of the same. */
export class TimeWriter {
  readonly #unit: EpochUnit | undefined;
  #zone: ZoneOffset | undefined;
  #day = noDay;
  #dayText = '';

  constructor(unit: EpochUnit | undefined) {
    this.#unit = unit;
  }

  get isText(): boolean {
    return this.#unit === undefined;
  }

  /** Zone of the times to come; undefined is UTC. Only texts show it. */
  set zone(zone: ZoneOffset | undefined) {
    this.#zone = zone;
  }

  /** `offset` is whole nanoseconds after `base`. Texts come without quotes. */
  write(out: TextBuffer, base: number, offset: number): void {
    const after = Math.floor(offset / 1e9);
    const seconds = base + after;
    const nanos = offset - after * 1e9;
    if (this.#unit === undefined) this.#text(out, seconds, nanos);
    else writeCount(out, this.#unit, seconds, nanos);
  }

  #text(out: TextBuffer, utcSeconds: number, nanos: number): void {
    const zoneOffset = this.#zone === undefined ? 0 : this.#zone(utcSeconds);
    const seconds = utcSeconds + zoneOffset;
    const day = Math.floor(seconds / secondsPerDay);
    if (day !== this.#day) {
      this.#day = day;
      this.#dayText = dayText(day);
    }
    out.ensure(48);
    out.ascii(this.#dayText);
    const ofDay = seconds - day * secondsPerDay;
    const minutes = (ofDay / 60) | 0;
    const hours = (minutes / 60) | 0;
    out.padded(hours, 2);
    out.byte(0x3a);
    out.padded(minutes - hours * 60, 2);
    out.byte(0x3a);
    out.padded(ofDay - minutes * 60, 2);
    if (nanos !== 0) writeFraction(out, nanos);
    if (zoneOffset === 0) out.byte(0x5a);
    else writeZone(out, zoneOffset);
  }
}

function writeFraction(out: TextBuffer, nanos: number): void {
  let digits = 9;
  let value = nanos | 0;
  for (; value % 10 === 0; digits--) value = (value / 10) | 0;
  out.byte(0x2e);
  out.padded(value, digits);
}

/** Whole minutes: Go omits the seconds of old zones. */
function writeZone(out: TextBuffer, zoneOffset: number): void {
  const minutes = Math.trunc(Math.abs(zoneOffset) / 60);
  out.byte(zoneOffset < 0 ? 0x2d : 0x2b);
  out.padded(Math.trunc(minutes / 60), 2);
  out.byte(0x3a);
  out.padded(minutes % 60, 2);
}

function dayText(day: number): string {
  const date = new Date(day * secondsPerDay * 1000);
  const pad = (value: number, digits: number) => String(value).padStart(digits, '0');
  return `${pad(date.getUTCFullYear(), 4)}-${pad(date.getUTCMonth() + 1, 2)}-${pad(date.getUTCDate(), 2)}T`;
}

/** Cut towards zero, as Go's division does: 1 ns before 1970 is 0 ms. */
function writeCount(out: TextBuffer, unit: EpochUnit, floorSeconds: number, floorNanos: number) {
  const isBefore = floorSeconds < 0;
  // Sign and size apart: both parts of one sign.
  let seconds = floorSeconds;
  let nanos = floorNanos;
  if (isBefore) {
    seconds = -seconds;
    if (nanos > 0) {
      seconds -= 1;
      nanos = 1e9 - nanos;
    }
  }
  switch (unit) {
    case 'ns':
      writeParts(out, isBefore, seconds, nanos, 9);
      return;
    case 'u':
      writeParts(out, isBefore, seconds, Math.floor(nanos / 1e3), 6);
      return;
    case 'ms':
      writeParts(out, isBefore, seconds, Math.floor(nanos / 1e6), 3);
      return;
    case 's':
      writeParts(out, isBefore, seconds, 0, 0);
      return;
    case 'm':
      writeParts(out, isBefore, Math.floor(seconds / 60), 0, 0);
      return;
    case 'h':
      writeParts(out, isBefore, Math.floor(seconds / 3600), 0, 0);
  }
}

function writeParts(
  out: TextBuffer,
  isNegative: boolean,
  high: number,
  low: number,
  digits: number,
): void {
  out.ensure(32);
  if (isNegative && (high !== 0 || low !== 0)) out.byte(0x2d);
  if (high === 0) {
    out.integer(low);
    return;
  }
  out.integer(high);
  out.padded(low, digits);
}

// Offsets of a time zone for row after row: looked up once a day.

import { zoneOffset } from '../influxql/parser/time-zone.ts';
import type { ZoneOffset } from './time-text.ts';

const secondsPerDay = 86_400;

/** For an IANA name that the parser has let pass; undefined for UTC. */
export function offsetsOf(zone: string | undefined): ZoneOffset | undefined {
  if (zone === undefined || zone === 'UTC') return undefined;
  let day = Number.NaN;
  /** undefined on a day on which the clocks change. */
  let offset: number | undefined;
  return (seconds) => {
    const today = Math.floor(seconds / secondsPerDay);
    if (today !== day) {
      day = today;
      const first = zoneOffset(zone, today * secondsPerDay);
      const last = zoneOffset(zone, (today + 1) * secondsPerDay - 1);
      offset = first === last ? first : undefined;
    }
    return offset ?? zoneOffset(zone, seconds);
  };
}

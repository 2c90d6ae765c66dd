// Offsets of time zones, from the zone data that comes with the runtime.

const formats = new Map<string, Intl.DateTimeFormat>();

/** Whether there is a zone of that name. Offsets such as `+01:00` are no names. */
export function isTimeZone(name: string): boolean {
  if (!/^[A-Za-z]/.test(name)) return false;
  try {
    formatOf(name);
    return true;
  } catch {
    return false;
  }
}

/** Seconds by which local time in the zone is ahead of UTC at that moment. */
export function zoneOffset(zone: string, unixSeconds: number): number {
  if (zone === 'UTC') return 0;
  const parts: Record<string, number> = {};
  for (const { type, value } of formatOf(zone).formatToParts(unixSeconds * 1000)) {
    parts[type] = Number(value);
  }
  const local = Date.UTC(
    parts['year']!,
    parts['month']! - 1,
    parts['day'],
    parts['hour'],
    parts['minute'],
    parts['second'],
  );
  return local / 1000 - unixSeconds;
}

/**
 * The moment at which a clock in the zone shows these seconds after 1970. For an hour that occurs twice in autumn,
 * the result is one of the two moments. For an hour that is skipped in spring, it is a moment next to it.
 */
export function fromLocal(zone: string, localSeconds: number): number {
  const guess = localSeconds - zoneOffset(zone, localSeconds);
  const better = localSeconds - zoneOffset(zone, guess);
  return better === guess || localSeconds - zoneOffset(zone, better) === better ? better : guess;
}

function formatOf(zone: string): Intl.DateTimeFormat {
  let format = formats.get(zone);
  if (format === undefined) {
    format = new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      hourCycle: 'h23',
      calendar: 'gregory',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
    formats.set(zone, format);
  }
  return format;
}

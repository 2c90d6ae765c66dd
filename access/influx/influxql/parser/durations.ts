// Durations as InfluxQL writes them: 1h30m, 500ms, 10u. Whole nanoseconds.

const nanosPer: ReadonlyMap<string, bigint> = new Map([
  ['ns', 1n],
  ['u', 1_000n],
  ['µ', 1_000n],
  ['ms', 1_000_000n],
  ['s', 1_000_000_000n],
  ['m', 60_000_000_000n],
  ['h', 3_600_000_000_000n],
  ['d', 86_400_000_000_000n],
  ['w', 604_800_000_000_000n],
]);

const maxDuration = 2n ** 63n - 1n;

/** The message is InfluxDB's. */
export class DurationError extends Error {
  override readonly name = 'DurationError';
}

export function parseDuration(text: string): bigint {
  const negative = text.startsWith('-');
  const part = /(\d{1,30})(ns|ms|[uµsmhdw])/y;
  let total = 0n;
  for (part.lastIndex = negative ? 1 : 0; ; ) {
    const found = part.exec(text);
    if (found === null) throw new DurationError('invalid duration');
    const [, count, unit] = found;
    const value = BigInt(count!);
    if (value > maxDuration) throw new DurationError('invalid duration');
    total += value * nanosPer.get(unit!)!;
    if (total > maxDuration) {
      throw new DurationError(
        `overflowed duration ${value}${unit}: choose a smaller duration or INF`,
      );
    }
    if (part.lastIndex === text.length) return negative ? -total : total;
  }
}

/** In the largest unit that leaves it whole. */
export function formatDuration(duration: bigint): string {
  if (duration === 0n) return '0s';
  for (const unit of ['w', 'd', 'h', 'm', 's', 'ms', 'u']) {
    const nanos = nanosPer.get(unit)!;
    if (duration % nanos === 0n) return `${duration / nanos}${unit}`;
  }
  return `${duration}ns`;
}

/** Formats durations as Go and InfluxDB's retention policies do: 168h0m0s. */
export function formatGoDuration(duration: bigint): string {
  if (duration < 0n) return `-${formatGoDuration(-duration)}`;
  if (duration === 0n) return '0s';
  const second = nanosPer.get('s')!;
  if (duration < second) {
    const unit = ['ms', 'µ', 'ns'].find((each) => duration >= nanosPer.get(each)!)!;
    const value = decimal(duration, nanosPer.get(unit)!);
    return `${value}${unit === 'µ' ? 'µs' : unit}`;
  }
  const hours = duration / nanosPer.get('h')!;
  const minutes = (duration / nanosPer.get('m')!) % 60n;
  const seconds = `${decimal(duration % nanosPer.get('m')!, second)}s`;
  if (hours > 0n) return `${hours}h${minutes}m${seconds}`;
  return minutes > 0n ? `${minutes}m${seconds}` : seconds;
}

/** A quotient with just the digits it needs; `unit` is a power of ten. */
function decimal(value: bigint, unit: bigint): string {
  const digits = String(unit).length - 1;
  const fraction = digits === 0 ? '' : String(value % unit).padStart(digits, '0');
  const kept = fraction.replace(/0+$/, '');
  return kept === '' ? String(value / unit) : `${value / unit}.${kept}`;
}

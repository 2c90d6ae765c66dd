// Numbers, sizes and times as people read them. Programs get them as they are, by --json.

/** 1234567 as 1,234,567; below ten with two places, below a hundred with one. */
export function formatNumber(value: number): string {
  const places =
    Number.isInteger(value) || Math.abs(value) >= 100 ? 0 : Math.abs(value) < 10 ? 2 : 1;
  const [whole, fraction] = value.toFixed(places).split('.');
  const grouped = whole!.replaceAll(/\B(?=(\d{3})+$)/g, ',');
  return fraction === undefined ? grouped : `${grouped}.${fraction}`;
}

const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];

/** Bytes in multiples of 1024. */
export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1023.95 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 ? Math.round(value) : value.toFixed(1).replace(/\.0$/, '')} ${units[unit]!}`;
}

export function formatDuration(micros: number): string {
  if (micros < 1000) return `${Math.round(micros)} us`;
  if (micros < 1_000_000) return `${(micros / 1000).toFixed(micros < 100_000 ? 1 : 0)} ms`;
  return `${(micros / 1_000_000).toFixed(1)} s`;
}

/** Unix milliseconds as the date and time of day where the reader is. */
export function formatTime(ms: number): string {
  const time = new Date(ms);
  if (Number.isNaN(time.getTime())) return '?';
  const two = (value: number) => String(value).padStart(2, '0');
  const day = `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
  return `${day} ${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
}

/**
 * Makes foreign text safe for a terminal: control sequences are shown, not executed.
 */
export function printable(text: string): string {
  if (!isUnsafe.test(text)) return text;
  return Array.from(text, (c) => (isUnsafe.test(c) ? codeText(c.codePointAt(0)!) : c)).join('');
}

// Control characters, line ends and bidirectional overrides.
const isUnsafe = /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u;

function codeText(code: number): string {
  const hex = code.toString(16);
  return code < 256 ? `\\x${hex.padStart(2, '0')}` : `\\u${hex}`;
}

/** As `printable`, for text of several lines. */
export function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n');
}

export function shorten(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
}

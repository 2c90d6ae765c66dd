// The server's own log, on standard error: JSON lines for programs, or lines for people on a terminal.

import { type DestinationStream, destination, type Logger, pino } from 'pino';

export type { Logger };

/** Fields that are never logged, at any depth. */
const redactedNames = ['password', 'token', 'secret', 'authorization', 'requirepass'];

export async function createLogger(
  level: string,
  format: 'auto' | 'json' | 'pretty',
): Promise<Logger> {
  const isPretty = format === 'pretty' || (format === 'auto' && process.stderr.isTTY);
  return loggerTo(isPretty ? await prettyLines() : standardError(), level);
}

export function loggerTo(stream: DestinationStream, level: string): Logger {
  const paths = redactedNames.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]);
  return pino({ level, redact: { paths, censor: '[hidden]' }, base: { pid: process.pid } }, stream);
}

// Written at once: the last line before an exit is the one that matters most.
function standardError(): DestinationStream {
  return destination({ fd: 2, sync: true });
}

async function prettyLines(): Promise<DestinationStream> {
  try {
    const { default: pretty } = await import('pino-pretty');
    return pretty({
      destination: 2,
      sync: true,
      colorize: process.stderr.isTTY,
      translateTime: 'SYS:HH:MM:ss.l',
      ignore: 'pid',
      singleLine: true,
    });
  } catch {
    const to = standardError();
    return { write: (line) => to.write(plainLine(line)) };
  }
}

const levelNames: Record<number, string> = {
  10: 'trace',
  20: 'debug',
  30: 'info',
  40: 'warn',
  50: 'error',
  60: 'fatal',
};

/** `12:00:01.250 warn  message {"fields":"as JSON"}` for one of pino's JSON lines. */
export function plainLine(json: string): string {
  const { time, level, msg, pid: _, ...fields } = JSON.parse(json) as Record<string, unknown>;
  const clock = new Date(Number(time)).toISOString().slice(11, 23);
  const name = (levelNames[Number(level)] ?? String(level)).padEnd(5);
  const rest = Object.keys(fields).length === 0 ? '' : ` ${JSON.stringify(fields)}`;
  return `${clock} ${name} ${String(msg)}${rest}\n`;
}

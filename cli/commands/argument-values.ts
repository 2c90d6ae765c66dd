// Arguments and flags that are more than text.

import { type Command, InvalidArgumentError } from 'commander';
import {
  defaultTenant,
  defaultUser,
  noLimits,
  type TenantLimits,
} from '../../contracts/tenancy/definitions.ts';
import { parseSize } from '../../server/settings/setting.ts';
import { didYouMean } from '../../server/settings/suggest.ts';
import { ExitError } from '../../server/lifecycle/exit-error.ts';
import { exitCodes } from '../../server/exit-codes.ts';
import { formatBytes, formatDuration, formatNumber } from '../output/values.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

export function wholeNumber(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.');
  return Number(text);
}

export function size(text: string): number {
  const value = parseSize(text);
  if (Number.isNaN(value)) throw new InvalidArgumentError('It must be a number, as 1000 or 64mb.');
  return value;
}

export function positive(text: string): number {
  const value = Number(text);
  if (!(value > 0 && value <= 86_400)) {
    throw new InvalidArgumentError('It must be a number above 0.');
  }
  return value;
}

/** Milliseconds of `1m`, `6h` or `7d`. */
export function durationOf(text: string): number {
  const [, number, unit] = /^(\d{1,6})\s*(m|min|minutes?|h|hours?|d|days?)$/.exec(text) ?? [];
  const word = /^(minute|hour|day)$/.exec(text)?.[0];
  const width = { m: minuteMs, h: hourMs, d: dayMs }[(unit ?? word ?? '').charAt(0)];
  const ms = Number(number ?? 1) * (width ?? NaN);
  if (!(ms > 0)) throw new InvalidArgumentError('It must be a time, as 1m, 6h or 7d.');
  return ms;
}

// ---- users

interface UserName {
  tenant: string;
  user: string;
}

/** `ann@shop` is the user ann of the tenant shop; `ann` is one of the tenant given, or of `default`. */
export function userName(text: string, tenant: string | undefined): UserName {
  const at = text.lastIndexOf('@');
  if (at < 0) return { tenant: tenant ?? defaultTenant, user: text || defaultUser };
  const named = text.slice(at + 1);
  if (tenant !== undefined && tenant !== named) {
    throw new ExitError(`${text} is not a user of the tenant ${tenant}`, exitCodes.usage);
  }
  return { tenant: named, user: text.slice(0, at) };
}

/** Valid names of tenants and users. The server enforces the rule; this check explains it. */
export function checkNewName(name: string): void {
  if (/^[A-Za-z][A-Za-z0-9_-]{0,62}$/.test(name)) return;
  throw new ExitError(
    `${JSON.stringify(name)} cannot be a name: it is a letter, then up to 62 letters, digits, dashes and underscores`,
    exitCodes.usage,
  );
}

// ---- limits

export type LimitChange = Partial<TenantLimits>;
type LimitName = keyof TenantLimits;

export const limitNames = Object.keys(noLimits) as LimitName[];

/** Description and number format of each limit. */
const limits: Record<LimitName, { text: string; format: (value: number) => string }> = {
  ruPerSecond: { text: 'request units a second', format: formatNumber },
  burstRu: { text: 'request units at once beyond that', format: formatNumber },
  peakRuPerSecond: { text: 'request units a second of such a burst', format: formatNumber },
  scanRuPerSecond: { text: 'request units a second for scans over Redis', format: formatNumber },
  queryRuPerSecond: {
    text: 'request units a second for queries over InfluxDB',
    format: formatNumber,
  },
  storedBytes: { text: 'bytes stored', format: formatBytes },
  keys: { text: 'keys', format: formatNumber },
  series: { text: 'series', format: formatNumber },
  connections: { text: 'connections', format: formatNumber },
  queryMemoryBytes: { text: 'memory of one query', format: formatBytes },
  queryTimeMs: { text: 'time of one query', format: (ms) => formatDuration(ms * 1000) },
};

export function limitText(name: LimitName): string {
  return limits[name].text;
}

/** 0 stands for none. */
export function limitValue(name: LimitName, value: number): string {
  return value === 0 ? 'none' : limits[name].format(value);
}

/** `ruPerSecond=5000`, `ru-per-second=5000`, `storedBytes=10gb`, `keys=none`; one more for those so far. */
export function collectLimits(text: string, sofar: LimitChange = {}): LimitChange {
  const [name = '', value] = text.split('=', 2);
  const known = limitNames.find(
    (one) => one.toLowerCase() === name.replaceAll('-', '').toLowerCase(),
  );
  if (known === undefined) {
    throw new InvalidArgumentError(
      `There is no limit ${name}.${didYouMean(name, limitNames)} There are: ${limitNames.join(', ')}.`,
    );
  }
  const number = value === 'none' ? 0 : parseSize(value ?? '');
  if (Number.isNaN(number)) {
    throw new InvalidArgumentError(`${known} must be a number, as ${known}=5000, or none.`);
  }
  return { ...sofar, [known]: number };
}

// ---- flags that several commands have

export function addPasswordFlags(command: Command): Command {
  return command
    .option('--password-stdin', 'take the password from standard input')
    .option('--password-prompt', 'ask for the password on the terminal')
    .option('--generate-password', 'generate one, and show it once');
}

export function addTenantFlag(command: Command, what: string): Command {
  return command.option('--tenant <tenant>', what);
}

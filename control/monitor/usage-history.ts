// Units spent by tenants, by plane and class of work, per minute and per hour.
//
// A plane's totals only grow while it runs, so new use is the difference to its previous report; a lost or repeated
// report does no harm. The minutes of the last hours and the hours of the last weeks are kept in bounded memory, and
// additions are written to a log once a minute, so that a restart knows them too. A crash loses the last minute's
// additions: a bill may be too low by that, never too high.

import {
  type AccountUsage,
  type ChargeClassName,
  chargeClasses,
  type MeterSnapshot,
} from '../../request-units/meter.ts';
import type { LineLog, LogRecord } from '../line-log/line-log.ts';

interface Spent {
  requests: number;
  /** Requests answered by an error, among them. */
  errors: number;
  /** Request units. */
  ru: number;
}

export const usageSlots = ['minute', 'hour'] as const;
export type UsageSlot = (typeof usageSlots)[number];

export const usageGroups = ['tenant', 'plane', 'class', 'time'] as const;
export type UsageGroup = (typeof usageGroups)[number];

export interface UsageQuery {
  slot: UsageSlot;
  /** Restricts the report to this tenant number. */
  tenant?: number;
  plane?: string;
  class?: ChargeClassName;
  /** Range in Unix milliseconds: slots that begin in [from, to) are returned. */
  from?: number;
  to?: number;
  /** Dimensions to group by. All other dimensions are summed. */
  by: readonly UsageGroup[];
}

export interface UsageRow extends Spent {
  /** Number of the tenant; -1 for the tenants that have no account of their own. */
  tenant?: number;
  plane?: string;
  class?: ChargeClassName;
  /** Start of the slot in Unix milliseconds. */
  at?: number;
}

/** Additions of one minute for one tenant, plane and class. */
type UsageItem = [
  tenant: number,
  plane: string,
  kind: ChargeClassName,
  requests: number,
  errors: number,
  ru: number,
];

export interface UsageRecord extends LogRecord {
  minute: number;
  items: UsageItem[];
}

interface Told {
  run: string;
  sequence: number;
  accounts: Map<number, AccountUsage>;
}

interface Slots {
  readonly widthMs: number;
  readonly most: number;
  /** By begin, ascending; then by tenant, plane and class. */
  readonly at: Map<number, Map<string, Spent>>;
}

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
// In all slots together; the oldest slots go when there are more.
const mostEntries = 200_000;
const restoredRecords = 100_000;

export class UsageHistory {
  readonly #slots: Readonly<Record<UsageSlot, Slots>> = {
    minute: { widthMs: minuteMs, most: 24 * 60, at: new Map() },
    hour: { widthMs: hourMs, most: 31 * 24, at: new Map() },
  };
  readonly #log: LineLog<UsageRecord> | undefined;
  readonly #now: () => number;
  /** Latest report of each plane, by tenant. */
  readonly #told = new Map<string, Told>();
  readonly #planes = new Set<string>();
  /** Added since the log was written, by minute. */
  #unwritten = new Map<number, Map<string, Spent>>();
  #entries = 0;

  constructor(log?: LineLog<UsageRecord>, now: () => number = Date.now) {
    this.#log = log;
    this.#now = now;
    for (const { minute, items } of log?.read(0, restoredRecords) ?? []) {
      for (const [tenant, plane, kind, requests, errors, ru] of items) {
        this.#planes.add(plane);
        this.#count(minute, keyOf(tenant, plane, kind), { requests, errors, ru });
      }
    }
  }

  /** Adds a plane's snapshot. A snapshot that is not newer than the last one is ignored. */
  add({ plane, run, sequence, accounts }: MeterSnapshot): void {
    this.#planes.add(plane);
    let told = this.#told.get(plane);
    // Another run begins at 0.
    if (told?.run !== run) {
      this.#told.set(plane, (told = { run, sequence: 0, accounts: new Map() }));
    }
    if (sequence <= told.sequence) return;
    told.sequence = sequence;
    const minute = Math.floor(this.#now() / minuteMs) * minuteMs;
    for (const account of accounts) {
      const before = told.accounts.get(account.tenant);
      // A tenant whose account was forgotten begins at 0 again.
      const since =
        before !== undefined && before.requests <= account.requests ? before : undefined;
      told.accounts.set(account.tenant, account);
      for (const kind of chargeClasses) {
        const more = difference(account, since, kind);
        if (more.requests === 0 && more.ru === 0) continue;
        const key = keyOf(account.tenant, plane, kind);
        this.#count(minute, key, more);
        addTo(slotOf(this.#unwritten, minute), key, more);
      }
    }
  }

  /** Number of the last known snapshot of a plane, from which to continue. */
  sequenceOf(plane: string): number {
    return this.#told.get(plane)?.sequence ?? 0;
  }

  /** Forgets a dropped tenant's reports. Its use stays in the history. */
  forget(tenant: number): void {
    for (const { accounts } of this.#told.values()) accounts.delete(tenant);
  }

  /** Writes added rows to the log. */
  async write(): Promise<void> {
    const unwritten = this.#unwritten;
    this.#unwritten = new Map();
    for (const [minute, entries] of unwritten) {
      const items = [...entries].map(([key, { requests, errors, ru }]): UsageItem => {
        const { tenant, plane, kind } = partsOf(key);
        return [tenant, plane, kind, requests, errors, ru];
      });
      const seq = (this.#log?.lastSeq ?? 0) + 1;
      await this.#log?.append({ seq, minute, items });
    }
  }

  async close(): Promise<void> {
    await this.write();
    await this.#log?.close();
  }

  /** Sums, ordered by the grouping. */
  rows(query: UsageQuery): UsageRow[] {
    const { from = 0, to = Infinity } = query;
    const sums = new Map<string, UsageRow>();
    for (const [at, entries] of this.#slots[query.slot].at) {
      if (at < from || at >= to) continue;
      for (const key of this.#keysFor(query) ?? entries.keys()) {
        const spent = entries.get(key);
        if (spent === undefined) continue;
        const parts = partsOf(key);
        if (isWanted(parts, query)) addRow(sums, groupOf(parts, at, query.by), spent);
      }
    }
    return [...sums.values()].sort(byGroup);
  }

  /** Rows of this history and of others, summed by group. */
  static sum(rows: readonly UsageRow[]): UsageRow[] {
    const sums = new Map<string, UsageRow>();
    for (const { requests, errors, ru, ...group } of rows) {
      addRow(sums, group, { requests, errors, ru });
    }
    return [...sums.values()].sort(byGroup);
  }

  /** All keys that one tenant can have: few, so that frequent queries stay cheap. */
  #keysFor({ tenant }: UsageQuery): string[] | undefined {
    if (tenant === undefined) return undefined;
    return [...this.#planes].flatMap((plane) =>
      chargeClasses.map((kind) => keyOf(tenant, plane, kind)),
    );
  }

  #count(minute: number, key: string, more: Spent): void {
    for (const slots of Object.values(this.#slots)) {
      const begin = Math.floor(minute / slots.widthMs) * slots.widthMs;
      if (addTo(slotOf(slots.at, begin), key, more)) this.#entries++;
      while (slots.at.size > slots.most) this.#dropOldest(slots);
    }
    const { minute: minutes, hour: hours } = this.#slots;
    while (this.#entries > mostEntries) {
      // Use in the minutes is contained in the hours as well.
      if (minutes.at.size > 1) this.#dropOldest(minutes);
      else if (hours.at.size > 1) this.#dropOldest(hours);
      else return;
    }
  }

  #dropOldest(slots: Slots): void {
    const oldest = Math.min(...slots.at.keys());
    this.#entries -= slots.at.get(oldest)?.size ?? 0;
    slots.at.delete(oldest);
  }
}

const separator = ' ';

function keyOf(tenant: number, plane: string, kind: ChargeClassName): string {
  return `${tenant}${separator}${plane}${separator}${kind}`;
}

interface Parts {
  tenant: number;
  plane: string;
  kind: ChargeClassName;
}

function partsOf(key: string): Parts {
  const [tenant, plane, kind] = key.split(separator) as [string, string, ChargeClassName];
  return { tenant: Number(tenant), plane, kind };
}

function difference(
  now: AccountUsage,
  before: AccountUsage | undefined,
  kind: ChargeClassName,
): Spent {
  const { requests, errors, lru } = now.classes[kind];
  const since = before?.classes[kind];
  return {
    requests: requests - (since?.requests ?? 0),
    errors: errors - (since?.errors ?? 0),
    ru: lru - (since?.lru ?? 0),
  };
}

function slotOf(slots: Map<number, Map<string, Spent>>, at: number): Map<string, Spent> {
  let slot = slots.get(at);
  if (slot === undefined) slots.set(at, (slot = new Map()));
  return slot;
}

/** Whether the entry is new. */
function addTo(slot: Map<string, Spent>, key: string, more: Spent): boolean {
  const found = slot.get(key);
  if (found === undefined) {
    slot.set(key, { ...more });
    return true;
  }
  found.requests += more.requests;
  found.errors += more.errors;
  found.ru += more.ru;
  return false;
}

function isWanted(parts: Parts, { tenant, plane, class: kind }: UsageQuery): boolean {
  return (
    (tenant === undefined || tenant === parts.tenant) &&
    (plane === undefined || plane === parts.plane) &&
    (kind === undefined || kind === parts.kind)
  );
}

function groupOf(
  { tenant, plane, kind }: Parts,
  at: number,
  by: readonly UsageGroup[],
): Omit<UsageRow, keyof Spent> {
  return {
    ...(by.includes('time') ? { at } : {}),
    ...(by.includes('tenant') ? { tenant } : {}),
    ...(by.includes('plane') ? { plane } : {}),
    ...(by.includes('class') ? { class: kind } : {}),
  };
}

function addRow(
  sums: Map<string, UsageRow>,
  group: Omit<UsageRow, keyof Spent>,
  { requests, errors, ru }: Spent,
): void {
  const name = JSON.stringify(group);
  let row = sums.get(name);
  if (row === undefined) sums.set(name, (row = { ...group, requests: 0, errors: 0, ru: 0 }));
  row.requests += requests;
  row.errors += errors;
  row.ru += ru;
}

function byGroup(a: UsageRow, b: UsageRow): number {
  return (
    (a.at ?? 0) - (b.at ?? 0) ||
    (a.tenant ?? 0) - (b.tenant ?? 0) ||
    (a.plane ?? '').localeCompare(b.plane ?? '') ||
    chargeClasses.indexOf(a.class ?? 'read') - chargeClasses.indexOf(b.class ?? 'read')
  );
}

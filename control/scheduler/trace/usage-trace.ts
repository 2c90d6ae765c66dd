// The trace of one server, from its usage history: a table for each tenant and plane. A leader bears all of a table's
// request units, a follower those of writes and of background work. Nodes and pods are left open: see `layout.ts`.

import type { ChargeClassName } from '../../../request-units/meter.ts';
import type { Trace } from './trace.ts';

/** Units spent in one minute. */
export interface MinuteUsage {
  /** Begin of the minute, Unix milliseconds. */
  at: number;
  tenant: string;
  plane: string;
  class: ChargeClassName;
  /** Request units. */
  ru: number;
}

const minuteMs = 60_000;
/** Classes of work that followers do as well. */
const replicated: readonly ChargeClassName[] = ['write', 'background'];

/**
 * `from` and `to` are Unix milliseconds at full minutes; minutes without a row are 0. `quotas` are request units a second of a
 * tenant on a plane, by `tenant/plane`.
 */
export function usageTrace(
  rows: readonly MinuteUsage[],
  from: number,
  to: number,
  quotas: ReadonlyMap<string, number> = new Map(),
): Trace {
  const points = Math.round((to - from) / minuteMs);
  const tables = new Map<string, { tenant: string; all: Float32Array; copied: Float32Array }>();
  for (const { at, tenant, plane, class: kind, ru } of rows) {
    const point = Math.floor((at - from) / minuteMs);
    if (point < 0 || point >= points) continue;
    const id = `${tenant}/${plane}`;
    let table = tables.get(id);
    if (table === undefined) {
      const nothing = (): Float32Array => new Float32Array(points);
      tables.set(id, (table = { tenant, all: nothing(), copied: nothing() }));
    }
    table.all[point]! += ru / 60;
    if (replicated.includes(kind)) table.copied[point]! += ru / 60;
  }
  const each = [...tables].sort(([a], [b]) => a.localeCompare(b));
  return {
    header: {
      format: 'polyrow-trace',
      version: 1,
      startAt: new Date(from).toISOString(),
      pointSeconds: 60,
      points,
      dimensions: ['ru'],
    },
    nodes: [],
    disks: [],
    pods: [],
    tables: each.map(([id, { tenant }]) => {
      const quota = quotas.get(id);
      return quota === undefined ? { id, tenant } : { id, tenant, quota };
    }),
    series: each.flatMap(([id, { all, copied }]) => [
      { id: `${id} leader`, values: { ru: all } },
      { id: `${id} follower`, values: { ru: copied } },
    ]),
    partitions: each.map(([id]) => ({
      id: `${id}/0`,
      table: id,
      leader: { series: `${id} leader` },
      follower: { series: `${id} follower` },
    })),
  };
}

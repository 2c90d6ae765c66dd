// How many request units the replicas of this node serve, by group: collected every ten seconds and kept by the minute.

import type { MinuteSpan } from '../../contracts/cluster.ts';
import { LoadMonitor } from '../../control/monitor/load-monitor.ts';

/** Interval at which the replicas' work is summed. */
export const collectMs = 10_000;
const minuteMs = 60_000;
/** With one dimension a replica takes 23 kB. */
const retention = { members: 1000, minutes: 24 * 60, hours: 7 * 24 };

export class GroupLoads {
  readonly #monitor = new LoadMonitor(1, retention);
  readonly #now: () => number;
  #collectedAt: number;

  constructor(now: () => number = Date.now) {
    this.#now = now;
    this.#collectedAt = now();
  }

  /** Units that each group's replica has served since the last call. */
  add(units: ReadonlyMap<number, number>): void {
    const at = this.#now();
    const seconds = (at - this.#collectedAt) / 1000;
    this.#collectedAt = at;
    // The clock was set back: the interval is unknown.
    if (seconds <= 0) return;
    const members = Array.from(units.keys(), String);
    const used = Float32Array.from(units.values());
    this.#monitor.add({ node: '', at, seconds, members, used });
  }

  /** Units a second of the last whole minute; undefined when nothing was collected in it. */
  unitsOf(group: number): number | undefined {
    const minute = Math.floor(this.#now() / minuteMs) - 1;
    return this.#monitor.mean(String(group), 0, minute);
  }

  /** Units a second in each minute of the span; 0 where nothing was collected. */
  minutesOf(group: number, { from, to }: MinuteSpan): number[] {
    const { mean } = this.#monitor.minutes(String(group), 0, from, to);
    return Array.from(mean, (units) => Number(units.toPrecision(4)));
  }

  forget(group: number): void {
    this.#monitor.forget(String(group));
  }
}

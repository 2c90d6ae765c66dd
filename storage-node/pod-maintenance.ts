// Maintenance of a pod: drops expired rows, frees and measures memory, and makes checkpoints when
// they are due.

import type { Clock } from '../universal-row/environment.ts';
import { engineClosed } from '../engines/engine.ts';
import { ReadFault } from '../universal-row/errors.ts';
import { backgroundWork, batchRequest, type PodAdmission } from '../contracts/pod-admission.ts';
import type { StepSource, StepWatcher } from '../contracts/step-watcher.ts';
import type { BackgroundWork } from './background-work.ts';
import { isShadowTable } from './backup/shadow.ts';
import type { Checkpoints } from './checkpoints.ts';
import type { PodMemory } from './pod-memory.ts';
import type { PodTick } from './pod-tick.ts';
import type { TableHolds } from './table-holds.ts';
import type { TableRulesByNumber } from './table-rules.ts';

const tickMs = 50;
/** A pod at rest has one round in so many: a node may have thousands of pods. */
const restTicks = 5;
// Rows whose expiry is due are dropped in slices this large, so that no other command waits for long.
const expirySlice = 200;
const backgroundBudgetMs = 1;
const expiryBudgetMs = 1;

const maintenance: StepSource = {
  stepInfo: () => ({ what: 'maintenance of rows', tenant: backgroundWork, bytes: 0 }),
};

interface PodMaintenanceOptions {
  tick: PodTick;
  holds: TableHolds;
  tables: TableRulesByNumber;
  checkpoints: Checkpoints;
  clock: Clock;
  report: (level: 'info' | 'warn' | 'error', message: string, fields?: object) => void;
  background: BackgroundWork | undefined;
  admission: PodAdmission | undefined;
  steps: StepWatcher | undefined;
  memory: PodMemory;
}

export class PodMaintenance {
  readonly #options: PodMaintenanceOptions;
  /** Tables yet to be looked through for rows that are due. */
  #expiring: number[] = [];
  #timer: NodeJS.Timeout | undefined;
  #waits = false;
  /** Whether some rows have an expiry, as of the last round. */
  #expires = false;
  /** The pod's ticks until the last round, if that has found nothing to do. */
  #restsSince: number | undefined;
  #skipped = 0;
  readonly #request = batchRequest(backgroundWork, () => {
    this.#waits = false;
    if (this.#timer !== undefined) this.maintain();
  });

  constructor(options: PodMaintenanceOptions) {
    this.#options = options;
  }

  start(): void {
    this.#timer = setInterval(() => this.#maintainOnceAdmitted(), tickMs);
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #maintainOnceAdmitted(): void {
    if (this.#waits) return;
    const { admission, clock, tick } = this.#options;
    if (tick.count === this.#restsSince && ++this.#skipped < restTicks) return;
    const result = admission?.admit(this.#request, clock.monotonic()) ?? 'admitted';
    if (result === 'admitted') this.maintain();
    else this.#waits = true;
  }

  /** One round. */
  maintain(): void {
    const { tick, clock, checkpoints, steps, memory } = this.#options;
    const startedAt = clock.monotonic();
    const { count } = tick;
    this.#expire();
    // Ends a tick opened here, or by a command whose client is gone: otherwise its time would stay
    // `now` for later commands.
    if (tick.isOpen) tick.end();
    const hasMore = tick.engine.background(backgroundBudgetMs);
    tick.unclaimed.reset();
    memory.check();
    checkpoints.makeIfDue();
    const hasWork = hasMore || this.#expires || this.#expiring.length > 0 || tick.count !== count;
    this.#restsSince = hasWork ? undefined : count;
    this.#skipped = 0;
    steps?.ended(startedAt, clock.monotonic(), maintenance);
  }

  #expire(): void {
    const { tick, tables, holds } = this.#options;
    // On followers, expired rows are dropped by the leader's entries.
    const isShut = tick.writeFailure !== undefined || tick.replica?.isShut === true;
    if (isShut || tick.keepsExpired) {
      this.#expiring = [];
      this.#expires = false;
      return;
    }
    const deadline = performance.now() + expiryBudgetMs;
    if (this.#expiring.length === 0) {
      this.#expiring = tick.engine.tables();
      this.#expires = false;
    }
    // Where there are thousands of tables, a round takes several ticks.
    for (let left = this.#expiring.length; left > 0; left--) {
      const table = this.#expiring.pop()!;
      const rules = tables.get(table);
      // Rows that a restore compares must not change.
      if (isShadowTable(table) || rules === undefined) continue;
      // What is copied, or being copied to, changes with the copy alone.
      if (rules.isFilling === true || tick.marks?.mayShut({ table }) === true) continue;
      if (holds.isHeld(table)) continue;
      while (tick.engine.table(table).expiringRows !== 0) {
        this.#expires = true;
        const dropped = this.#expireSlice(table);
        if (dropped < expirySlice || performance.now() > deadline) break;
      }
      if ((left & 63) === 0 && performance.now() > deadline) return;
    }
  }

  #expireSlice(table: number): number {
    const { tick, background, report } = this.#options;
    const { tx } = tick;
    const before = tx.expiredRows;
    const fieldsBefore = tx.expiredFields;
    const logBytes = tick.changeTable(table, () => tx.dropExpiredRows(expirySlice));
    if (logBytes instanceof ReadFault) {
      // The rows due are being read: the next round meets them in memory.
      tx.expiredRows = before;
      tx.expiredFields = fieldsBefore;
      logBytes.ready.catch((reason: unknown) => {
        if (reason === engineClosed) return;
        report('error', 'reading expired rows failed', { err: reason });
      });
      return 0;
    }
    const dropped = tx.expiredRows - before + (tx.expiredFields - fieldsBefore);
    if (dropped > 0) background?.expired(table, dropped, logBytes);
    return dropped;
  }
}

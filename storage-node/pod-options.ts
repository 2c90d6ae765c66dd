// Options and counters of a pod.

import type { Clock, Rng } from '../universal-row/environment.ts';
import type { StepWatcher } from '../contracts/step-watcher.ts';
import type { PodAdmission } from '../contracts/pod-admission.ts';
import type { Engine } from '../engines/engine.ts';
import type { CommandFlowRegistry } from './flows/command-flows.ts';
import type { BackgroundWork } from './background-work.ts';
import type { LogPins } from './backup/log-pins.ts';
import type { CheckpointStats } from './checkpoints.ts';
import type { PartitionLog } from './replicator/partition-log.ts';
import type { TableRulesByNumber } from './table-rules.ts';

export interface PodOptions {
  engine: Engine;
  log: PartitionLog;
  /** The log's number in the engine; `localGroup` if left out. */
  group?: number;
  /** Pins that keep the log for backups. */
  pins?: LogPins | undefined;
  /**
   * Rules of the tables kept here, by table number. The object is live: `readOnly` takes effect at the next command,
   * all other rules at the next tick.
   */
  tables: TableRulesByNumber;
  clock: Clock;
  rng: Rng;
  /** Writes that need memory are refused beyond this; Infinity for no limit. */
  maxMemoryBytes: number;
  /** A checkpoint is made whenever the log has grown by this much. */
  checkpointBytes: number;
  /** Told about failures that no client asked about. */
  report: (level: 'info' | 'warn' | 'error', message: string, fields?: object) => void;
  /** Receives reports of background work. */
  background?: BackgroundWork | undefined;
  /** Tasks to run around commands; none when left out. Later registrations are not seen. */
  flows?: CommandFlowRegistry | undefined;
  /** Schedules maintenance and the steps of long commands beside other tenants. */
  admission?: PodAdmission | undefined;
  /** Called before a long command logs much: what was answered until then need not wait for its entry. */
  beforeLargeEntry?: (() => void) | undefined;
  /** Hears of maintenance that takes long. */
  steps?: StepWatcher | undefined;
}

export interface PodStats extends CheckpointStats {
  expiredRows: number;
  internalErrors: number;
  readFaults: number;
  loadedEntries: number;
  /** Commands and transactions that took many steps, and their steps. */
  longCommands: number;
  longSteps: number;
}

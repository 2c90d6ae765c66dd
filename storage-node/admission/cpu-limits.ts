// How many reads and writes a pod has in its processor at a time, and how many units of writes; fewer while the store
// compacts, so that compaction keeps up and the store never has to stop writes by itself (ABase, section 4.3, rule 2).

import { isWriteKind, WorkKind } from './work-kind.ts';

export interface CpuLimitsOptions {
  cores: number;
  readsPerCore: number;
  writesPerCore: number;
  /** Units of all writes under way; one that is larger runs by itself. */
  writeUnitsPerCore: number;
  /** Of these units, while the store compacts. */
  compacting: number;
}

export const cpuLimitsDefaults: CpuLimitsOptions = {
  cores: 1,
  readsPerCore: 8,
  writesPerCore: 8,
  writeUnitsPerCore: 256,
  compacting: 0.5,
};

export class CpuLimits {
  /** Whether the store compacts, or collects garbage. */
  isCompacting = false;
  readonly #most: { reads: number; writes: number; units: number };
  readonly #compacting: number;
  #reads = 0;
  #writes = 0;
  #units = 0;

  constructor(options: Partial<CpuLimitsOptions> = {}) {
    const all = { ...cpuLimitsDefaults, ...options };
    this.#most = {
      reads: all.cores * all.readsPerCore,
      writes: all.cores * all.writesPerCore,
      units: all.cores * all.writeUnitsPerCore,
    };
    this.#compacting = all.compacting;
  }

  get writeUnits(): number {
    return this.#units;
  }

  /** Units of writes at which no other begins. */
  get unitCeiling(): number {
    return this.#most.units * (this.isCompacting ? this.#compacting : 1);
  }

  mayBegin(kind: WorkKind): boolean {
    if (kind === WorkKind.background) return true;
    if (!isWriteKind(kind)) return this.#reads < this.#most.reads;
    return this.#writes < this.#most.writes && this.#units < this.unitCeiling;
  }

  began(kind: WorkKind, units: number): void {
    this.#count(kind, 1, units);
  }

  ended(kind: WorkKind, units: number): void {
    this.#count(kind, -1, -units);
  }

  #count(kind: WorkKind, pieces: number, units: number): void {
    if (kind === WorkKind.background) return;
    if (isWriteKind(kind)) {
      this.#writes += pieces;
      this.#units += units;
    } else this.#reads += pieces;
  }
}

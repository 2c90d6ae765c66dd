// How much of what an engine lets be on its way to the disk may be: half of it while level 0 is compacted, so that
// compaction keeps up, and what is written then waits before it is done rather than in LevelDB (ABase, section 4.3, the
// half of rule 2 that is about writes).

import type { LevelZeroState } from '../../engines/engine.ts';
import { cpuLimitsDefaults } from './cpu-limits.ts';

/** LevelDB compacts level 0 from so many files on. */
const compactsAtFiles = 4;

export class WriteCeiling {
  #isCompacting = false;
  #compactedBytes = 0;

  get isCompacting(): boolean {
    return this.#isCompacting;
  }

  /** Of what is usual. */
  get part(): number {
    return this.#isCompacting ? cpuLimitsDefaults.compacting : 1;
  }

  /** To be called now and then, a few times a second. */
  observe({ files, compactedBytes }: LevelZeroState): void {
    // Bytes are counted when a compaction ends: there was one since the last look.
    this.#isCompacting = files >= compactsAtFiles || compactedBytes > this.#compactedBytes;
    this.#compactedBytes = compactedBytes;
  }
}

// What the clients of one tenant share of scripts.

import type { RunningScript } from '../../universal-row/transforms/redis/scripts/host.ts';
import { ScriptCache } from '../../universal-row/transforms/redis/scripts/script.ts';

export class TenantScripts {
  readonly cache = new ScriptCache();
  /** Those that take many steps. */
  readonly running = new Set<RunningScript>();
}

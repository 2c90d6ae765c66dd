// What the clients of one tenant share of scripts.

import { FunctionLibraries } from '../../universal-row/transforms/redis/scripts/functions.ts';
import type { RunningScript } from '../../universal-row/transforms/redis/scripts/host.ts';
import { ScriptCache } from '../../universal-row/transforms/redis/scripts/script.ts';

export class TenantScripts {
  readonly cache = new ScriptCache();
  readonly functions = new FunctionLibraries();
  /** Those that take many steps. */
  readonly running = new Set<RunningScript>();
}

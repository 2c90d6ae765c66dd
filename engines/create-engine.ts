// The engine of each model of rows. LevelDB takes a while to load, so that is left until a table needs it.

import type { Disk } from '../universal-row/environment.ts';
import type { Engine, ReadScheduler } from './engine.ts';
import { MemoryEngine } from './memory/memory-engine.ts';

export interface EngineOptions {
  /** The engine's own; made if it does not exist. No two engines share one. */
  directory: string;
  disk: Disk;
  /** Memory for rows cached above the disk, in bytes. In-memory engines ignore this. */
  cacheBytes?: number;
  /** Bytes of rows that were written and are not in a file yet, of an engine with files. */
  writeBufferBytes?: number;
  /** Limits the disk reads an engine makes for clients; by default reads are not limited. */
  readScheduler?: ReadScheduler | undefined;
}

const loaders = {
  memory: (options: EngineOptions) => new MemoryEngine(options),
  kv: async ({ writeBufferBytes, ...options }: EngineOptions) => {
    const { KvEngine } = await import('./kv/kv-engine.ts');
    return new KvEngine({ ...options, level: { writeBufferBytes } });
  },
} satisfies Record<string, (options: EngineOptions) => Promise<Engine> | Engine>;

/** Values of a table's `model` property, and of `Engine.model`. */
export type RowModel = keyof typeof loaders;

/** An engine that is not open yet. */
export async function createEngine(model: RowModel, options: EngineOptions): Promise<Engine> {
  return await loaders[model](options);
}

// The engine of each model. LevelDB takes a while to load, so that is left until a table needs it.

import type { TableModel } from '../../control/metadata/table-definition.ts';
import type { Engine } from '../../engines/engine.ts';
import { MemoryEngine } from '../../engines/memory/memory-engine.ts';
import type { EngineOptions } from '../../engines/registry.ts';

/** Pods are distinguished in their logs, so that no log is ever replayed into another's engine. */
export const podIds = { memory: 1, kv: 2, tsm: 3 } as const;

type EngineLoader = (options: EngineOptions) => Promise<Engine> | Engine;

const loaders: Readonly<Record<TableModel, EngineLoader>> = {
  memory: (options) => new MemoryEngine(options),
  kv: async (options) => {
    const { KvEngine } = await import('../../engines/kv/kv-engine.ts');
    return new KvEngine(options);
  },
};

/** An engine that is not open yet. */
export async function createEngine(model: TableModel, options: EngineOptions): Promise<Engine> {
  return await loaders[model](options);
}

// Model name to engine. The code that starts pods registers the engines of its build, and looks one
// up by a table's `model` property.

import type { Disk } from '../universal-row/environment.ts';
import type { Engine, ReadGate } from './engine.ts';
import { KvEngine } from './kv/kv-engine.ts';
import { MemoryEngine } from './memory/memory-engine.ts';

export interface EngineOptions {
  /** The engine's own; made if it does not exist. No two engines share one. */
  directory: string;
  disk: Disk;
  /** Memory for rows cached above the disk, in bytes. In-memory engines ignore this. */
  cacheBytes?: number;
  /** Bytes of rows that were written and are not in a file yet, of an engine with files. */
  writeBufferBytes?: number | undefined;
  /** Whether a table's keys are to lie in their own order, where an engine has the choice. */
  isOrdered?: (table: number) => boolean;
  /** Limits the disk reads an engine makes for clients; by default reads are not limited. */
  readGate?: ReadGate | undefined;
}

export interface EngineFactory {
  /** Value of a table's `model` property, and of `Engine.model` of the engines it creates. */
  readonly model: string;
  /** An engine that is not open yet. */
  create(options: EngineOptions): Engine;
}

export class UnknownModelError extends Error {
  override readonly name = 'UnknownModelError';
}

export class EngineRegistry {
  readonly #factories = new Map<string, EngineFactory>();

  constructor(factories: Iterable<EngineFactory> = []) {
    for (const factory of factories) this.register(factory);
  }

  register(factory: EngineFactory): void {
    if (factory.model === '') throw new Error('an engine needs a model name');
    if (this.#factories.has(factory.model)) {
      throw new Error(`the model '${factory.model}' is registered already`);
    }
    this.#factories.set(factory.model, factory);
  }

  /** Throws `UnknownModelError`, which lists the models there are. */
  lookup(model: string): EngineFactory {
    const factory = this.#factories.get(model);
    if (factory !== undefined) return factory;
    const known = this.models().join(', ') || 'none';
    throw new UnknownModelError(`no engine for the model '${model}' (there are: ${known})`);
  }

  /** Names of the models, in alphabetical order. */
  models(): string[] {
    return [...this.#factories.keys()].sort();
  }
}

/** A registry of the engines that come with the server: one row each. */
export function builtInEngines(): EngineRegistry {
  return new EngineRegistry([
    { model: 'memory', create: (options) => new MemoryEngine(options) },
    {
      model: 'kv',
      create: ({ writeBufferBytes, ...options }) =>
        new KvEngine({ ...options, level: { writeBufferBytes } }),
    },
  ]);
}

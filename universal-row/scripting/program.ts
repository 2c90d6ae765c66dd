// A Lua program, compiled when it is first run in each form.

import type { Chunk } from './ast.ts';
import { emit } from './emitter.ts';
import type { ConstantNames } from './expression-emitter.ts';
import { LuaSyntaxError } from './lexer.ts';
import type { Machine } from './machine.ts';
import type { Site } from './script-state.ts';
import { parse } from './parser.ts';
import { type Callable, LuaTable, noValues, Pending } from './values.ts';

/** Iterators that generic loops walk by themselves. */
export interface Iterators {
  next: Callable;
  inext: Callable;
  /** Globals during the loading of a library. */
  atLoad?: LuaTable;
}

type Factory = (
  machine: Machine,
  table: typeof LuaTable,
  pending: typeof Pending,
  iterators: Iterators,
  none: typeof noValues,
  sites: readonly Site[],
) => Callable;

interface Form {
  readonly factory: Factory;
  readonly sites: readonly Site[];
}

/** Globals that a run sets. */
const variable = new Set(['KEYS', 'ARGV']);

export class Program {
  readonly source: string;
  readonly #chunk: Chunk;
  readonly #chunkName: string;
  readonly #isLibrary: boolean;
  #plain: Form | undefined;
  #stepping: Form | undefined;

  /** Throws `LuaSyntaxError`. The name stands before line numbers. A library sees other globals while it is loaded. */
  constructor(source: string, chunkName: string, isLibrary = false) {
    this.source = source;
    this.#chunkName = chunkName;
    this.#isLibrary = isLibrary;
    this.#chunk = parse(source, chunkName);
  }

  /** The main function, for one machine. All machines that a program is given have the same globals. */
  bind(machine: Machine, iterators: Iterators): Callable {
    const form = machine.isStepping
      ? (this.#stepping ??= this.#compile(machine))
      : (this.#plain ??= this.#compile(machine));
    return form.factory(machine, LuaTable, Pending, iterators, noValues, form.sites);
  }

  #compile(machine: Machine): Form {
    try {
      const names = constantNames(machine, this.#isLibrary);
      const { source, sites } = emit(this.#chunk.main, this.#chunkName, machine.isStepping, names);
      // The source is made of the syntax tree alone: see emitter.ts.
      // oxlint-disable-next-line typescript/no-implied-eval
      const factory = new Function('S', 'T', 'P', 'Y', 'E', 'Z', source) as Factory;
      return { factory, sites };
    } catch (error) {
      const isTooDeep = error instanceof RangeError;
      if (!isTooDeep) throw error;
      throw new LuaSyntaxError(`${this.#chunkName}:1: chunk has too many syntax levels`);
    }
  }
}

function constantNames({ globals }: Machine, isLibrary: boolean): ConstantNames {
  const library = (name: string): LuaTable | undefined => {
    const found = variable.has(name) ? undefined : globals.get(name);
    return found instanceof LuaTable && found.isReadonly ? found : undefined;
  };
  return {
    isLibrary,
    has: (name) => globals.isReadonly && !variable.has(name) && globals.get(name) !== undefined,
    hasFunction: (name, field) =>
      globals.isReadonly && typeof library(name)?.get(field) === 'function',
  };
}

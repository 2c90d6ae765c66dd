// A machine with its libraries, in which scripts of one form run. Scripts cannot change any of it.

import { baseLibrary } from './lib/base.ts';
import { bitLibrary } from './lib/bit.ts';
import { cjsonLibrary } from './lib/cjson.ts';
import { cmsgpackLibrary } from './lib/cmsgpack.ts';
import { coroutineLibrary } from './lib/coroutine.ts';
import { libraryTable, mathLibrary } from './lib/math.ts';
import { structLibrary } from './lib/struct.ts';
import { stringLibrary } from './lib/string.ts';
import { tableLibrary } from './lib/table.ts';
import { Machine } from './machine.ts';
import type { ScriptLimits } from './script-state.ts';
import type { Iterators, Program } from './program.ts';
import { type Callable, LuaTable, type Value } from './values.ts';

interface EnvironmentOptions {
  /** Scripts yield when their slice is used up. */
  isStepping: boolean;
  limits?: ScriptLimits;
  /** Further globals. */
  globals?: (machine: Machine) => Record<string, Value>;
  /** All globals that a library sees while it is loaded. */
  atLoad?: (machine: Machine) => Record<string, Value>;
  /** Scripts may set globals. For tests of the language alone. */
  isOpen?: boolean;
}

/** Makes access to missing fields an error, for a table of globals too. */
export function protect(m: Machine, globals: LuaTable): void {
  const meta = new LuaTable();
  const missing: Callable = (_globals, name) => {
    const text = `Script attempted to access nonexistent global variable '${String(name)}'`;
    throw m.error(text);
  };
  meta.set('__index', missing);
  meta.isReadonly = true;
  globals.meta = meta;
}

export class Environment {
  readonly machine: Machine;
  readonly #iterators = {} as Iterators;
  readonly #reset: (seed: number) => void;
  readonly #mains = new WeakMap<Program, Callable>();

  constructor(options: EnvironmentOptions) {
    const m = new Machine(options.isStepping, options.limits);
    this.machine = m;
    const strings = libraryTable(stringLibrary(m));
    const math = mathLibrary(m);
    const cjson = cjsonLibrary(m);
    const globals: Record<string, Value> = {
      ...baseLibrary(m, this.#iterators),
      string: strings,
      table: libraryTable(tableLibrary(m)),
      math: libraryTable(math.functions),
      coroutine: libraryTable(coroutineLibrary(m)),
      bit: libraryTable(bitLibrary(m)),
      cjson: libraryTable(cjson.functions),
      cmsgpack: libraryTable(cmsgpackLibrary(m)),
      struct: libraryTable(structLibrary(m)),
      ...options.globals?.(m),
    };
    for (const [name, value] of Object.entries(globals)) m.globals.set(name, value);
    m.globals.set('_G', m.globals);
    m.stringMeta.set('__index', strings);
    m.stringMeta.isReadonly = true;
    m.globals.isReadonly = options.isOpen !== true;
    if (m.globals.isReadonly) protect(m, m.globals);
    if (options.atLoad !== undefined) {
      const atLoad = libraryTable(options.atLoad(m));
      protect(m, atLoad);
      this.#iterators.atLoad = atLoad;
    }
    this.#reset = (seed) => {
      math.reseed(seed);
      cjson.reset();
    };
  }

  /** The main function of a program here. */
  main(program: Program): Callable {
    let main = this.#mains.get(program);
    if (main === undefined) {
      this.#mains.set(program, (main = program.bind(this.machine, this.#iterators)));
    }
    return main;
  }

  /** Before each run. Its random numbers follow from `seed`, in [0, 1). */
  begin(seed: number): void {
    this.machine.begin();
    this.#reset(seed);
  }

  setGlobal(name: string, value: LuaTable): void {
    this.machine.globals.set(name, value);
  }
}

// Libraries of functions: FUNCTION LOAD, the loaded libraries, FCALL.

import type { Transform } from '../../../command.ts';
import { CommandError, ReadFault } from '../../../errors.ts';
import { LuaSyntaxError } from '../../../scripting/lexer.ts';
import type { Machine } from '../../../scripting/machine.ts';
import { numberText } from '../../../scripting/numbers.ts';
import { Program } from '../../../scripting/program.ts';
import {
  type Callable,
  LuaError,
  LuaTable,
  NeedsSteps,
  Pending,
  type Value,
} from '../../../scripting/values.ts';
import { checkedKeyCount, outOfMemory, wordList } from './eval.ts';
import type { ScriptHost } from './host.ts';
import { failure, loadingLibrary, redisLibrary } from './redis-library.ts';
import { runScript, ScriptEnvironment } from './run-script.ts';
import { knownFlags, shebangOf } from './script.ts';

const badName =
  'ERR Library names can only contain letters, numbers, or underscores(_) and must be at least one character long';
const notFound = new CommandError('ERR Function not found');
const badKeyCount = new CommandError('ERR Bad number of keys provided');
const writesNot = new CommandError(
  'ERR Can not execute a script with write flag using *_ro command.',
);
/** Bytes of libraries that one tenant may have. */
const maxLibraryBytes = 16 * 1024 * 1024;
const namePattern = /^[A-Za-z0-9_]+$/;

interface ScriptFunction {
  readonly name: string;
  readonly description: string | undefined;
  readonly flags: ReadonlySet<string>;
  readonly library: FunctionLibrary;
  steppingRuns: number;
}

/** A function registered by a library. */
interface Registered {
  readonly callback: Callable;
  readonly description: string | undefined;
  readonly flags: ReadonlySet<string>;
}

/** Receives the functions that libraries of an environment register. */
interface Registry {
  functions: Map<string, Registered> | undefined;
}

class FunctionEnvironment extends ScriptEnvironment {
  readonly registry: Registry;

  constructor(isStepping: boolean) {
    const registry: Registry = { functions: undefined };
    super(
      isStepping,
      (m, current) => ({
        redis: redisLibrary(m, current, {
          register_function: (...args) => {
            if (registry.functions === undefined) {
              // Functions do not have it when they are called.
              m.fail(m.at, "attempt to call field 'register_function' (a nil value)");
            }
            return register(m, registry, args);
          },
        }),
      }),
      (m, current) => ({
        redis: loadingLibrary(m, current, {
          register_function: (...args) => register(m, registry, args),
        }),
      }),
    );
    this.registry = registry;
  }

  /** Runs a library and returns its functions. Rethrows the library's errors. */
  load(program: Program): Map<string, Registered> {
    const functions = new Map<string, Registered>();
    this.registry.functions = functions;
    const { n, d, at } = this.machine;
    try {
      const result = this.environment.main(program)();
      // Loading is bounded work: a library loaded in the plain form ends within a few steps.
      if (result instanceof Pending) while (result.next().done !== true);
    } finally {
      this.registry.functions = undefined;
      Object.assign(this.machine, { n, d, at });
    }
    return functions;
  }
}

function register(m: Machine, registry: Registry, args: readonly Value[]): readonly Value[] {
  const { functions } = registry;
  if (functions === undefined) {
    throw failure('ERR redis.register_function can only be called on FUNCTION LOAD command');
  }
  let name: string | undefined;
  let callback: Value;
  let description: string | undefined;
  let flags = new Set<string>();
  if (args.length === 1 && args[0] instanceof LuaTable) {
    const fields = args[0];
    for (let at = fields.seekRest(0); at >= 0; at = fields.seekRest(at + 1)) {
      const key = fields.restKey(at);
      const value = fields.restValue(at);
      if (key === 'function_name') name = namedString(key, value);
      else if (key === 'callback') callback = namedFunction(value);
      else if (key === 'description') description = namedString(key, value);
      else if (key === 'flags') flags = flagsOf(value);
      else throw failure('ERR unknown argument given to redis.register_function');
    }
    if (name === undefined) {
      throw failure('ERR redis.register_function must get a function name argument');
    }
    if (callback === undefined) {
      throw failure('ERR redis.register_function must get a callback argument');
    }
  } else if (args.length === 2) {
    const [first, second] = args;
    if (typeof first !== 'string') {
      throw failure('ERR first argument to redis.register_function must be a string');
    }
    name = first;
    callback = second;
    if (typeof callback !== 'function') {
      throw failure('ERR second argument to redis.register_function must be a function');
    }
  } else if (args.length === 1) {
    throw failure(
      'ERR calling redis.register_function with a single argument is only applicable to Lua table (representing named arguments).',
    );
  } else throw failure('ERR wrong number of arguments to redis.register_function');
  if (!namePattern.test(name)) throw failure(badName);
  if (functions.has(name)) throw failure('ERR Function already exists in the library');
  m.allocate(256);
  functions.set(name, {
    callback: callback as Callable,
    description,
    flags,
  });
  return [];
}

function namedString(key: string, value: Value): string {
  if (typeof value === 'number') return numberText(value);
  if (typeof value === 'string') return value;
  throw failure(`ERR ${key} argument given to redis.register_function must be a string`);
}

function namedFunction(value: Value): Callable {
  if (typeof value === 'function') return value as Callable;
  throw failure('ERR callback argument given to redis.register_function must be a function');
}

function flagsOf(value: Value): Set<string> {
  if (!(value instanceof LuaTable)) {
    throw failure(
      'ERR flags argument to redis.register_function must be a table representing function flags',
    );
  }
  const flags = new Set<string>();
  for (const flag of value.list) {
    if (typeof flag !== 'string' || !knownFlags.has(flag)) throw failure('ERR unknown flag given');
    flags.add(flag);
  }
  return flags;
}

// As of EVAL: plain runs never overlap.
let plain: FunctionEnvironment | undefined;

export class FunctionLibrary {
  readonly name: string;
  readonly code: string;
  readonly functions = new Map<string, ScriptFunction>();
  readonly #program: Program;
  readonly #callbacks: ReadonlyMap<string, Registered>;

  /** `code` has one character for each byte. Throws `CommandError`. */
  constructor(code: string) {
    this.code = code;
    this.name = libraryName(code);
    try {
      this.#program = new Program(code, 'user_function', true);
    } catch (error) {
      if (!(error instanceof LuaSyntaxError)) throw error;
      throw new CommandError(`ERR Error compiling function: ${error.message}`);
    }
    this.#callbacks = this.#load();
    if (this.#callbacks.size === 0) throw new CommandError('ERR No functions registered');
    for (const [name, { description, flags }] of this.#callbacks) {
      this.functions.set(name, { name, description, flags, library: this, steppingRuns: 0 });
    }
  }

  #load(): ReadonlyMap<string, Registered> {
    const where = (plain ??= new FunctionEnvironment(false));
    where.environment.begin(0);
    try {
      return where.load(this.#program);
    } catch (error) {
      if (error instanceof NeedsSteps) {
        throw new CommandError('ERR Error registering functions: ERR FUNCTION LOAD timeout');
      }
      const value = where.machine.caughtAtTop(error);
      const text = value instanceof LuaTable ? value.get('err') : `ERR ${String(value)}`;
      throw new CommandError(`ERR Error registering functions: ${String(text)}`);
    }
  }

  /** Returns the function for an environment. In the stepping form, the library is run first. */
  callback(name: string, where: ScriptEnvironment): Callable {
    if (where === plain || !(where instanceof FunctionEnvironment)) {
      return this.#callbacks.get(name)!.callback;
    }
    const found = where.load(this.#program).get(name);
    if (found === undefined) throw new LuaError('the library did not register its function again');
    return found.callback;
  }
}

export function libraryName(code: string): string {
  if (!code.startsWith('#!')) throw new CommandError('ERR Missing library metadata');
  const shebang = code.includes('\n') ? shebangOf(code) : undefined;
  if (shebang === undefined) throw new CommandError('ERR Invalid library metadata');
  if (shebang.engine.toLowerCase() !== 'lua') {
    throw new CommandError(`ERR Engine '${shebang.engine}' not found`);
  }
  let name: string | undefined;
  for (const word of shebang.words) {
    if (!word.startsWith('name=')) {
      throw new CommandError(`ERR Invalid metadata value given: ${word}`);
    }
    if (name !== undefined) {
      throw new CommandError('ERR Invalid metadata value, name argument was given multiple times');
    }
    name = word.slice('name='.length);
  }
  if (name === undefined) throw new CommandError('ERR Library name was not given');
  if (!namePattern.test(name)) throw new CommandError(badName);
  return name;
}

/**
 * Reads the code of each library by its name from the rows. Rejects with a `CommandError` while the
 * group of the rows has no leader.
 */
export type LibraryReader = () => Promise<ReadonlyMap<string, string>>;

/** The libraries of a tenant. */
export class FunctionLibraries {
  readonly all = new Map<string, FunctionLibrary>();
  /** By name in lower case: function names are case-insensitive. */
  readonly #functions = new Map<string, ScriptFunction>();
  #bytes = 0;
  #reader: LibraryReader | undefined;
  #isOutdated = false;
  #reading: Promise<string | undefined> | undefined;
  #failure: string | undefined;

  /**
   * Uses the rows of a cluster: they are read before the libraries are used, and again after each
   * change.
   */
  readBy(reader: LibraryReader): void {
    this.#reader = reader;
    this.#isOutdated = true;
  }

  /** Marks the libraries as out of date, because the rows have changed or may have. */
  outdate(): void {
    this.#isOutdated = this.#reader !== undefined;
  }

  /**
   * Updates the libraries from the rows. Undefined if they are up to date; otherwise resolves when they are, or to an
   * error text.
   */
  refresh(): Promise<string | undefined> | undefined {
    if (!this.#isOutdated && this.#reading === undefined) return undefined;
    return (this.#reading ??= this.#read());
  }

  async #read(): Promise<string | undefined> {
    try {
      while (this.#isOutdated) {
        this.#isOutdated = false;
        this.adopt(await this.#reader!());
      }
      return undefined;
    } catch (error) {
      this.#isOutdated = true;
      if (!(error instanceof CommandError)) throw error;
      return error.message;
    } finally {
      this.#reading = undefined;
    }
  }

  /** Throws the fault to wait for, if the libraries are out of date, or the error to answer. */
  need(): void {
    const reading = this.refresh();
    if (reading === undefined) return;
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw new CommandError(failure);
    throw new ReadFault(
      reading.then((error) => {
        this.#failure = error;
      }),
    );
  }

  /** Size of their code. */
  get bytes(): number {
    return this.#bytes;
  }

  get functionCount(): number {
    return this.#functions.size;
  }

  find(name: string): ScriptFunction | undefined {
    return this.#functions.get(name) ?? this.#functions.get(name.toLowerCase());
  }

  /** Compiles a library without adding it. Throws `CommandError`. */
  compile(code: string): FunctionLibrary {
    if (this.#bytes + code.length > maxLibraryBytes) {
      throw new CommandError('OOM the function libraries of this tenant take too much memory');
    }
    return new FunctionLibrary(code);
  }

  /**
   * Throws if a function name is in use by another library. Libraries in `replaced`, and the library of the same name, do
   * not count.
   */
  checkNames(library: FunctionLibrary, replaced?: ReadonlyMap<string, unknown>): void {
    for (const name of library.functions.keys()) {
      const other = this.#functions.get(name.toLowerCase())?.library.name;
      if (other === undefined || other === library.name || replaced?.has(other) === true) continue;
      throw new CommandError(`ERR Function ${name} already exists`);
    }
  }

  /** Adds a library, and replaces the library of the same name. */
  put(library: FunctionLibrary): void {
    this.delete(library.name);
    this.all.set(library.name, library);
    for (const one of library.functions.values()) {
      this.#functions.set(one.name.toLowerCase(), one);
    }
    this.#bytes += library.code.length;
  }

  /** Replaces all libraries by those in the rows. Returns the libraries that cannot be loaded, with the reasons. */
  adopt(codes: ReadonlyMap<string, string>): { name: string; why: string }[] {
    const failed: { name: string; why: string }[] = [];
    for (const name of this.all.keys()) if (!codes.has(name)) this.delete(name);
    for (const [name, code] of codes) {
      if (this.all.get(name)?.code === code) continue;
      try {
        this.put(new FunctionLibrary(code));
      } catch (error) {
        if (!(error instanceof CommandError)) throw error;
        failed.push({ name, why: error.message });
      }
    }
    return failed;
  }

  /** False when there is none of that name. */
  delete(name: string): boolean {
    const library = this.all.get(name);
    if (library === undefined) return false;
    this.all.delete(name);
    for (const one of library.functions.values()) {
      const key = one.name.toLowerCase();
      if (this.#functions.get(key) === one) this.#functions.delete(key);
    }
    this.#bytes -= library.code.length;
    return true;
  }

  clear(): void {
    this.all.clear();
    this.#functions.clear();
    this.#bytes = 0;
  }
}

/** The transform of FCALL for one caller; `isReadOnly` for FCALL_RO. */
export function fcallTransform(
  host: ScriptHost,
  libraries: FunctionLibraries,
  isReadOnly: boolean,
): Transform {
  return (rows, args, reply) => {
    host.begin();
    libraries.need();
    const called = libraries.find(args.latin1(1, 1024));
    if (called === undefined) throw notFound;
    const given = args.integerOrNaN(2);
    if (Number.isNaN(given)) throw badKeyCount;
    const count = checkedKeyCount(args, given);
    const { name, flags, library } = called;
    if (isReadOnly && !flags.has('no-writes')) throw writesNot;
    const allowOom = flags.has('allow-oom') || flags.has('no-writes');
    if (!allowOom && host.refusal(true)?.startsWith('OOM') === true) throw outOfMemory;
    if (count > 1) rows.expect(3, 2 + count, 1);
    const keys = wordList(args, 3, 3 + count);
    const words = wordList(args, 3 + count, args.count);
    return runScript(
      {
        name,
        host,
        rights: { mayWrite: !flags.has('no-writes'), allowOom },
        rollsBack: flags.has('rollback'),
        history: called,
        plain: plain!,
        stepping: () => new FunctionEnvironment(true),
        start: (where) =>
          library.callback(name, where)(new LuaTable(keys.slice()), new LuaTable(words.slice())),
      },
      rows,
      reply,
    );
  };
}

// State of one run of a script: its position, instruction budget, stack and memory, and its errors.
// Short names are those that generated code uses.

import { getHeapStatistics } from 'node:v8';
import { isMainThread, resourceLimits } from 'node:worker_threads';
import {
  type Coroutine,
  LuaError,
  LuaTable,
  NeedsSteps,
  ScriptAbort,
  type Value,
} from './values.ts';

/** Position of an operation in a script, and names of its operands, for error texts. */
export interface Site {
  readonly chunk: string;
  readonly line: number;
  /** As `local 'x'`. */
  readonly first?: string | undefined;
  readonly second?: string | undefined;
}

export interface ScriptLimits {
  /** Instructions that the plain form may take: about 10 ms of them. */
  plainBudget: number;
  /** Instructions from one yield of the stepping form to the next. */
  stepBudget: number;
  /** Bytes of memory, as the heap grows. */
  memoryBytes: number;
  /** Bytes of one string. */
  stringBytes: number;
}

export const scriptLimits: ScriptLimits = {
  plainBudget: 3_000_000,
  stepBudget: 20_000,
  memoryBytes: 256 * 1024 * 1024,
  stringBytes: 16 * 1024 * 1024,
};

/** Bytes counted between two looks at the heap. */
const memoryCheckBytes = 32 * 1024 * 1024;
const slotBytes = 48;
/** A frame is counted in units of so many bytes. */
export const frameUnitBytes = 64;
const stackBytes = isMainThread ? 984 * 1024 : (resourceLimits.stackSizeMb ?? 4) * 1024 * 1024;
/** Frames of the stepping form take more than is counted. */
const maxDepth = Math.floor((stackBytes * 0.18) / frameUnitBytes);
/** Call site of functions that are not called from Lua code. */
export const nowhere: Site = { chunk: '?', line: 0 };

export class ScriptState {
  /** Instructions left. */
  n = 0;
  /** Instructions of this run before those that `n` was set to last. */
  #used = 0;
  #given = 0;
  /** Depth of the stack, in units. */
  d = 0;
  readonly dmax = maxDepth;
  /** Where the call last begun is. */
  at: Site = nowhere;
  /** By depth: where the function there was called. */
  readonly calls: Site[] = [];
  /** The form that yields. */
  readonly isStepping: boolean;
  current: Coroutine | undefined = undefined;
  /** Metatable of all strings. */
  readonly stringMeta = new LuaTable();
  readonly globals = new LuaTable();
  /** Set to end the script. */
  abort: ScriptAbort | undefined = undefined;
  /** pcall gives the text of a table with `err` in place of the table, as redis-server's does. */
  unwrapsErrors = false;
  limits: ScriptLimits;
  #memory = 0;
  #heapAtStart = -1;
  #identities = new WeakMap<object, number>();
  #identityCount = 0;

  constructor(isStepping: boolean, limits: ScriptLimits = scriptLimits) {
    this.isStepping = isStepping;
    this.limits = limits;
  }

  /** Before a script begins. */
  begin(): void {
    this.#given = this.isStepping ? this.limits.stepBudget : this.limits.plainBudget;
    this.n = this.#given;
    this.#used = 0;
    this.d = 0;
    this.at = nowhere;
    this.current = undefined;
    this.abort = undefined;
    this.#memory = memoryCheckBytes;
    this.#heapAtStart = -1;
    if (this.#identityCount > 0) {
      this.#identityCount = 0;
      this.#identities = new WeakMap();
    }
  }

  // ---- budgets

  /** The plain form has no instructions left. */
  tick(): void {
    throw new NeedsSteps('budget');
  }

  /** The stepping form continues after a yield. */
  resumed(): void {
    if (this.abort !== undefined) throw this.abort;
    this.refill();
  }

  /** The stepping form has yielded, and may take as many instructions again. */
  refill(): void {
    this.#used += this.#given - this.n;
    this.n = this.#given = this.limits.stepBudget;
  }

  /** Instructions of this run. */
  get used(): number {
    return this.#used + this.#given - this.n;
  }

  /** A function begins, and the stack is full or (in the plain form) no instruction is left. */
  enter(): void {
    if (this.d > this.dmax) this.overflow();
    if (!this.isStepping) this.tick();
  }

  overflow(): never {
    throw this.error('stack overflow');
  }

  /** Charges a builtin's work; `units` as instructions. */
  charge(units: number): void {
    this.n -= units;
    if (this.n < 0 && !this.isStepping) this.tick();
  }

  /** Counts a string that was made. */
  made(text: string): string {
    const { length } = text;
    if (length > 64) this.allocate(length);
    return text;
  }

  /** Before so many bytes are made. */
  allocate(bytes: number): void {
    if (bytes > this.limits.stringBytes) throw this.error('not enough memory');
    this.charge(bytes >>> 5);
    this.#memory -= bytes;
    if (this.#memory < 0) this.#checkMemory();
  }

  grew(): void {
    this.#memory -= slotBytes;
    if (this.#memory < 0) this.#checkMemory();
  }

  #checkMemory(): void {
    this.#memory = memoryCheckBytes;
    const used = getHeapStatistics().used_heap_size;
    if (this.#heapAtStart < 0 || used < this.#heapAtStart) this.#heapAtStart = used;
    if (used - this.#heapAtStart > this.limits.memoryBytes) {
      throw new ScriptAbort('ERR the script uses too much memory');
    }
  }

  // ---- errors

  /** An error of a builtin, with the place of its call. */
  error(message: string): LuaError {
    return new LuaError(`${this.where(1)}${message}`);
  }

  /** The place of a function on the stack as errors begin with it: level 1 runs, level 2 called it; '' beyond. */
  where(level: number): string {
    if (level > 2) return '';
    const site = level === 1 ? this.at : this.calls[this.d];
    return site === undefined || site === nowhere ? '' : `${site.chunk}:${site.line}: `;
  }

  fail(site: Site, message: string): never {
    throw new LuaError(`${site.chunk}:${site.line}: ${message}`, site);
  }

  argument(position: number, name: string, message: string): LuaError {
    return this.error(`bad argument #${position} to '${name}' (${message})`);
  }

  /** Value that pcall returns for an error; rethrows errors that scripts must not see. */
  caught(error: unknown): Value {
    const value = this.caughtAtTop(error);
    if (!this.unwrapsErrors || !(value instanceof LuaTable)) return value;
    const text = value.get('err');
    return typeof text === 'string' ? text : value;
  }

  /** As `caught`, of an error that no pcall has caught. */
  caughtAtTop(error: unknown): Value {
    if (error instanceof LuaError) return error.value;
    if (error instanceof RangeError) {
      return /call stack/.test(error.message)
        ? `${this.where(1)}stack overflow`
        : 'not enough memory';
    }
    throw error;
  }

  /** A number for a table or function as `tostring` shows it: the same in every run. */
  identity(object: object): number {
    let id = this.#identities.get(object);
    if (id === undefined) this.#identities.set(object, (id = ++this.#identityCount));
    return id;
  }
}

// Lua values as JavaScript has them: nil is undefined, strings have one character (0 to 255) for each byte, functions
// are functions. A function returns one value as it is, and any other number of values as an array, which is never a
// value itself. In the stepping form functions of Lua return a generator whose result is that.

export type Value = unknown;

export type Callable = (...args: Value[]) => unknown;

export const noValues: readonly Value[] = Object.freeze([]);

/** A value of C that Lua can only compare, as cjson.null. */
export class LightUserdata {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

/** An error of Lua: any value can be one. */
export class LuaError {
  readonly value: Value;
  /** Where it was raised, if not at the call last made. */
  readonly site: { readonly chunk: string; readonly line: number } | undefined;

  constructor(value: Value, site?: { readonly chunk: string; readonly line: number }) {
    this.value = value;
    this.site = site;
  }
}

/** Ends a script unconditionally: pcall does not catch it. The text is the reply. */
export class ScriptAbort {
  readonly message: string;

  constructor(message: string) {
    this.message = message;
  }
}

/** The plain form of a script cannot continue: it is to be run again in the form that yields. */
export class NeedsSteps {
  readonly reason: 'budget' | 'coroutine' | 'command';

  constructor(reason: 'budget' | 'coroutine' | 'command') {
    this.reason = reason;
  }
}

/** `x instanceof Pending` is true for generators, and for nothing else that a Lua function can return. */
export const Pending: new () => Generator<unknown, unknown, unknown> = (() => {
  function pending(): void {}
  pending.prototype = Object.getPrototypeOf(function* (): Generator {}).prototype as object;
  return pending as unknown as new () => Generator<unknown, unknown, unknown>;
})();

const maxHoles = 32;

export class LuaTable {
  /** Values of 1, 2, 3 ...; the last one is not nil. */
  readonly list: Value[];
  meta: LuaTable | undefined = undefined;
  isReadonly = false;
  // Other keys, in the order of insertion, in which `next` iterates. Removed keys keep their place
  // until the table grows.
  #places: Map<Value, number> | undefined = undefined;
  #keys: Value[] = [];
  #values: Value[] = [];
  #holes = 0;

  /** Takes the array over. */
  constructor(list: Value[] = []) {
    this.list = list;
    while (list.length > 0 && list[list.length - 1] === undefined) list.pop();
  }

  get(key: Value): Value {
    if (typeof key === 'number') {
      const { list } = this;
      const at = key - 1;
      if (at >= 0 && at < list.length && Math.floor(at) === at) return list[at];
    }
    const place = this.#places?.get(key);
    return place === undefined ? undefined : this.#values[place];
  }

  /**
   * Sets a field, ignoring its metatable; true when the table has grown. The key is not nil and not
   * NaN.
   */
  set(key: Value, value: Value): boolean {
    if (typeof key === 'number') {
      const { list } = this;
      const at = key - 1;
      if (at >= 0 && at <= list.length && Math.floor(at) === at) {
        if (at < list.length) {
          list[at] = value;
          if (value === undefined && at === list.length - 1) this.#trim();
          return false;
        }
        if (value !== undefined) {
          if (this.#places !== undefined) this.#remove(key);
          list.push(value);
          if (this.#places !== undefined && this.#places.size > 0) this.#migrate();
          return true;
        }
      }
    }
    return this.#put(key, value);
  }

  /** Elements 1 to n, where n is the border that `#` gives. */
  get length(): number {
    return this.list.length;
  }

  #trim(): void {
    const { list } = this;
    do list.pop();
    while (list.length > 0 && list[list.length - 1] === undefined);
  }

  /** Puts an element before one of the list. */
  insertAt(index: number, value: Value): void {
    this.list.splice(index - 1, 0, value);
    if (this.#places !== undefined && this.#places.size > 0) this.#migrate();
  }

  /** Removes an element of the list; those after it move down. */
  removeAt(index: number): void {
    const { list } = this;
    if (index < list.length) list.splice(index - 1, 1);
    else this.#trim();
    if (list.length > 0 && list[list.length - 1] === undefined) this.#trim();
  }

  /** Elements that follow those in the list move there. */
  #migrate(): void {
    const { list } = this;
    for (;;) {
      const place = this.#places!.get(list.length + 1);
      if (place === undefined) return;
      const value = this.#values[place];
      if (value === undefined) return;
      this.#remove(list.length + 1);
      list.push(value);
    }
  }

  #remove(key: Value): void {
    const place = this.#places!.get(key);
    if (place === undefined || this.#values[place] === undefined) return;
    this.#values[place] = undefined;
    this.#holes++;
  }

  #put(key: Value, value: Value): boolean {
    const place = this.#places?.get(key);
    if (place !== undefined) {
      if (value === undefined) this.#remove(key);
      else {
        if (this.#values[place] === undefined) this.#holes--;
        this.#values[place] = value;
      }
      return false;
    }
    if (value === undefined) return false;
    if (this.#holes > maxHoles && this.#holes > this.#keys.length >>> 1) this.#compact();
    this.#places ??= new Map();
    this.#places.set(key, this.#keys.length);
    this.#keys.push(key);
    this.#values.push(value);
    return true;
  }

  #compact(): void {
    const keys = this.#keys;
    const values = this.#values;
    this.#keys = [];
    this.#values = [];
    this.#holes = 0;
    this.#places = new Map();
    for (let i = 0; i < keys.length; i++) {
      if (values[i] === undefined) continue;
      this.#places.set(keys[i], this.#keys.length);
      this.#keys.push(keys[i]);
      this.#values.push(values[i]);
    }
  }

  // ---- walks: through the list first, then through the rest

  /** The first position of the list at or after `position` that has a value, or -1. */
  seek(position: number): number {
    const { list } = this;
    let at = position;
    for (; at < list.length; at++) if (list[at] !== undefined) return at;
    return -1;
  }

  /** As `seek`, in the rest. */
  seekRest(position: number): number {
    for (let at = position; at < this.#keys.length; at++) {
      if (this.#values[at] !== undefined) return at;
    }
    return -1;
  }

  restKey(position: number): Value {
    return this.#keys[position];
  }

  restValue(position: number): Value {
    return this.#values[position];
  }

  /** The position of a key in the rest, its value removed or not; -1 when it was never there. */
  restPosition(key: Value): number {
    return this.#places?.get(key) ?? -1;
  }

  /** Fields of the rest. */
  get restCount(): number {
    return this.#keys.length - this.#holes;
  }
}

type CoroutineStatus = 'suspended' | 'running' | 'normal' | 'dead';

export class Coroutine {
  status: CoroutineStatus = 'suspended';
  readonly start: Callable;
  steps: Generator<unknown, unknown, unknown> | undefined = undefined;
  /** Depth of its own part of the stack, while it is suspended. */
  depth = 0;

  constructor(start: Callable) {
    this.start = start;
  }
}

/** Values a coroutine passes to its resumer. */
export class Yielded {
  readonly values: Value[];

  constructor(values: Value[]) {
    this.values = values;
  }
}

export function typeName(value: Value): string {
  switch (typeof value) {
    case 'undefined':
      return 'nil';
    case 'boolean':
    case 'number':
    case 'string':
    case 'function':
      return typeof value;
    default:
      if (value instanceof LuaTable) return 'table';
      return value instanceof Coroutine ? 'thread' : 'userdata';
  }
}

/** The first of a function's results. */
export function firstOf(result: unknown): Value {
  return result instanceof Array ? (result as Value[])[0] : result;
}

export function listOf(result: unknown): readonly Value[] {
  return result instanceof Array ? (result as Value[]) : [result];
}

/** A builtin's work in steps: it yields when a step's instructions are used up. */
export type Work<T> = Generator<unknown, T, unknown>;

/** Whether it is the work to find a value, and not the value. */
export function isWork<T>(found: T | Work<T>): found is Work<T> {
  return found instanceof Pending;
}

// Coroutines: generators of their own. They exist in the stepping form only; a plain script that makes one is run
// again in that form.

import type { Machine } from '../machine.ts';
import {
  type Callable,
  Coroutine,
  listOf,
  LuaError,
  NeedsSteps,
  Pending,
  typeName,
  type Value,
  Yielded,
} from '../values.ts';

/** Frames of resume. */
const resumeDepth = 12;

type Later = Generator<unknown, unknown, unknown>;

/** Runs a coroutine until it yields or ends; rethrows its errors. */
function* advance(m: Machine, co: Coroutine, args: Value[]): Generator<unknown, Value[], unknown> {
  if (co.steps === undefined) {
    const result = co.start(...args);
    if (!(result instanceof Pending)) {
      co.status = 'dead';
      return [...listOf(result)];
    }
    co.steps = result;
  }
  let step = co.steps.next(args);
  for (;;) {
    if (step.done === true) {
      co.status = 'dead';
      return [...listOf(step.value)];
    }
    if (step.value instanceof Yielded) {
      co.status = 'suspended';
      return step.value.values;
    }
    // A slice has ended, or a row is being read: the whole script waits.
    yield step.value;
    step = co.steps.next();
  }
}

function* resume(m: Machine, co: Coroutine, args: Value[]): Generator<unknown, Value[], unknown> {
  if (co.status !== 'suspended') {
    const state = co.status === 'dead' ? 'dead' : 'non-suspended';
    throw new LuaError(`cannot resume ${state} coroutine`);
  }
  const base = m.d;
  const before = m.current;
  m.d = base + co.depth + resumeDepth;
  if (m.d > m.dmax) {
    m.d = base;
    m.overflow();
  }
  if (before !== undefined) before.status = 'normal';
  m.current = co;
  co.status = 'running';
  try {
    const values = yield* advance(m, co, args);
    co.depth = m.d - base - resumeDepth;
    return values;
  } catch (error) {
    co.status = 'dead';
    throw error;
  } finally {
    m.d = base;
    m.current = before;
    if (before !== undefined) before.status = 'running';
  }
}

export function coroutineLibrary(m: Machine): Record<string, Callable> {
  const needed = (): void => {
    if (!m.isStepping) throw new NeedsSteps('coroutine');
  };
  const checked = (value: Value, name: string): Coroutine => {
    if (value instanceof Coroutine) return value;
    throw m.argument(1, name, 'coroutine expected');
  };
  const made = (f: Value, name: string): Coroutine => {
    needed();
    if (typeof f !== 'function') {
      throw m.argument(1, name, `Lua function expected, got ${typeName(f)}`);
    }
    m.allocate(1024);
    return new Coroutine(f as Callable);
  };
  return {
    create: (f) => made(f, 'create'),
    *resume(value, ...args): Later {
      const co = checked(value, 'resume');
      try {
        return [true, ...(yield* resume(m, co, args))];
      } catch (error) {
        return [false, m.caught(error)];
      }
    },
    wrap: (f) => {
      const co = made(f, 'wrap');
      return function* (...args: Value[]): Later {
        return yield* resume(m, co, args);
      };
    },
    *yield(...args): Later {
      if (m.current === undefined) {
        throw m.error('attempt to yield across metamethod/C-call boundary');
      }
      return yield new Yielded(args);
    },
    status: (value) => checked(value, 'status').status,
    running: () => m.current,
  };
}

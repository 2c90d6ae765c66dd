// A flow is a set of named tasks and their predecessors: a graph without cycles. Flows are data;
// flow-registry.ts selects the flow of an action on a model, flow-runner.ts runs one.

import type { MaybePromise } from '../../universal-row/maybe-promise.ts';

/** Where a task stands in a flow. */
export interface TaskPlace {
  readonly name: string;
  /** Names of the tasks that must have ended before this one begins. */
  readonly after: readonly string[];
}

/** Control a task has over the flow it runs in. */
export interface FlowControl {
  /** On the monotonic clock, in milliseconds; Infinity for none. */
  readonly deadlineAt: number;
  /** Aborted when the flow is cancelled: for tasks that wait. */
  readonly signal: AbortSignal;
  /**
   * Records tokens reserved for this flow. `giveBack` receives the unspent ones when the flow ends.
   */
  reserve(tokens: number, giveBack: (unused: number) => void): void;
  /** Spends reserved tokens; returns how many of these had not been reserved. */
  spend(tokens: number): number;
}

/** A piece of work in a flow over some context `C`. */
export interface Task<C> {
  readonly name: string;
  /** Must be said of a task that ever returns a promise. */
  readonly mayWait?: boolean;
  /** Throws or rejects to end the flow: tasks not yet begun then never begin. */
  readonly run: (context: C, flow: FlowControl) => MaybePromise<void>;
}

export type PlacedTask<C> = Task<C> & TaskPlace;

/** Cost of a task since the start, in one flow. */
export interface TaskCost {
  runs: number;
  failures: number;
  /** Times the flow was cancelled while the task waited. */
  cancelled: number;
  /** Milliseconds it held the event loop. */
  busyMs: number;
  /** Milliseconds from its first wait to its end. */
  waitMs: number;
}

/** A flow that cannot be, or a task that does not do as it declares: a mistake in our code. */
export class FlowError extends Error {
  override readonly name = 'FlowError';
}

/** Tasks are sets of bits while a flow waits. */
const maxTasks = 31;

export function newTaskCost(): TaskCost {
  return { runs: 0, failures: 0, cancelled: 0, busyMs: 0, waitMs: 0 };
}

export class Flow<C> {
  readonly name: string;
  /** Each after all those it needs. */
  readonly tasks: readonly PlacedTask<C>[];
  /** By task: a bit for each task it comes directly after. */
  readonly needs: readonly number[];
  readonly costs: readonly TaskCost[];
  readonly mayWait: boolean;

  /** Throws `FlowError` for two tasks of one name, a task that is not there, or a cycle. */
  constructor(name: string, tasks: readonly PlacedTask<C>[]) {
    if (tasks.length > maxTasks) {
      throw new FlowError(`flow ${name}: ${tasks.length} tasks, at most ${maxTasks} are possible`);
    }
    this.name = name;
    this.tasks = inOrder(name, tasks);
    const bits = new Map(this.tasks.map((task, i) => [task.name, 1 << i]));
    this.needs = this.tasks.map((task) => task.after.reduce((set, one) => set | bits.get(one)!, 0));
    this.costs = this.tasks.map(newTaskCost);
    this.mayWait = tasks.some((task) => task.mayWait === true);
  }
}

/** The tasks in an order in which each can run, otherwise as given. Throws as `Flow` does. */
export function inOrder<T extends TaskPlace>(flow: string, tasks: readonly T[]): T[] {
  checkNames(flow, tasks);
  const ordered: T[] = [];
  const placed = new Set<string>();
  const left = new Set(tasks);
  while (left.size > 0) {
    const next = [...left].find((task) => task.after.every((name) => placed.has(name)));
    if (next === undefined) {
      throw new FlowError(`flow ${flow}: a cycle, ${describeCycle([...left])}`);
    }
    left.delete(next);
    placed.add(next.name);
    ordered.push(next);
  }
  return ordered;
}

function checkNames(flow: string, tasks: readonly TaskPlace[]): void {
  const names = new Set<string>();
  for (const { name } of tasks) {
    if (names.has(name)) throw new FlowError(`flow ${flow}: two tasks are called ${name}`);
    names.add(name);
  }
  for (const { name, after } of tasks) {
    const stranger = after.find((one) => !names.has(one));
    if (stranger === undefined) continue;
    const known = [...names].join(', ');
    throw new FlowError(
      `flow ${flow}: ${name} comes after ${stranger}, which it does not have (it has ${known})`,
    );
  }
}

/** Describes a cycle of tasks that each require another one to run first. */
function describeCycle(tasks: readonly TaskPlace[]): string {
  const byName = new Map(tasks.map((task) => [task.name, task]));
  const path: string[] = [];
  let name = tasks[0]!.name;
  while (!path.includes(name)) {
    path.push(name);
    name = byName.get(name)!.after.find((one) => byName.has(one))!;
  }
  return [...path.slice(path.indexOf(name)), name].join(' after ');
}

/** Names of the direct and indirect predecessors of `names`. */
export function predecessors(
  tasks: readonly TaskPlace[],
  names: readonly string[],
): ReadonlySet<string> {
  const byName = new Map(tasks.map((task) => [task.name, task]));
  const found = new Set<string>();
  const visit = (name: string): void => {
    for (const one of byName.get(name)?.after ?? []) {
      if (found.has(one)) continue;
      found.add(one);
      visit(one);
    }
  };
  names.forEach(visit);
  return found;
}

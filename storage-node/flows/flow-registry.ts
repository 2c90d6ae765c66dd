// Which flow an action on a model takes: the standard one, and the tasks registered on top of it.

import { Action } from '../../universal-row/command.ts';
import { FlowError, inOrder, predecessors, type Task, type TaskPlace } from './flow.ts';
import { standardFlows, type StandardFlows } from './standard-flows.ts';

/** Position of a task, and the commands for which it runs. `before` or `after` is required. */
export interface Placement {
  /** Tasks that wait for this one. */
  before?: string | readonly string[];
  /** Tasks this one waits for. */
  after?: string | readonly string[];
  /** All, when left out. */
  actions?: readonly Action[];
  /** All, when left out. */
  models?: readonly string[];
}

export interface FlowLimits {
  /** Milliseconds until a command must have its final answer; Infinity for no limit. */
  deadlineMs: number;
  /** Tasks of one command that wait at the same time. */
  fanOut: number;
}

/** A task of a whole flow: a standard one, or one that was registered. */
export interface FlowTask<C> extends TaskPlace {
  readonly fused: boolean;
  readonly task: Task<C> | undefined;
}

interface Registered<C> {
  task: Task<C>;
  before: readonly string[];
  after: readonly string[];
  actions: ReadonlySet<Action>;
  models: ReadonlySet<string> | undefined;
}

const actionNames = Object.keys(Action) as (keyof typeof Action)[];
const allActions = Object.values(Action);
/** Stands for the models that no registration names. */
const anyOtherModel = '*';

export class FlowRegistry<C> {
  readonly limits: FlowLimits;
  readonly #standard: StandardFlows;
  readonly #registered: Registered<C>[] = [];

  constructor(limits: Partial<FlowLimits> = {}, standard: StandardFlows = standardFlows) {
    this.limits = { deadlineMs: Infinity, fanOut: 8, ...limits };
    this.#standard = standard;
  }

  /**
   * Adds a task to every matching flow. Throws `FlowError`, and adds nothing, if one of these flows would be
   * impossible. Pods read the registry once, when they are created.
   */
  register(task: Task<C>, place: Placement): this {
    const entry: Registered<C> = {
      task,
      before: listOf(place.before),
      after: listOf(place.after),
      actions: new Set(place.actions ?? allActions),
      models: place.models === undefined ? undefined : new Set(place.models),
    };
    if (entry.before.length + entry.after.length === 0) {
      throw new FlowError(`task ${task.name}: name the task that it comes before or after`);
    }
    this.#registered.push(entry);
    try {
      for (const action of entry.actions) {
        for (const model of entry.models ?? this.#models()) this.flow(action, model);
      }
    } catch (error) {
      this.#registered.pop();
      throw error;
    }
    return this;
  }

  /** The whole flow, each task after those it needs. */
  flow(action: Action, model: string): readonly FlowTask<C>[] {
    const name = flowName(action, model);
    const extras = this.#registered.filter(
      (entry) => entry.actions.has(action) && (entry.models?.has(model) ?? true),
    );
    const tasks: (FlowTask<C> & { after: string[] })[] = this.#standard[action].map((task) => ({
      name: task.name,
      after: [...task.after],
      fused: task.fused,
      task: undefined,
    }));
    for (const { task, after } of extras) {
      tasks.push({ name: task.name, after: [...after], fused: false, task });
    }
    for (const { task, before } of extras) {
      for (const later of before) {
        const found = tasks.find((one) => one.name === later);
        if (found === undefined) {
          const known = tasks.map((one) => one.name).join(', ');
          throw new FlowError(
            `flow ${name}: ${task.name} comes before ${later}, which it does not have (it has ${known})`,
          );
        }
        found.after.push(task.name);
      }
    }
    const ordered = inOrder(name, tasks);
    checkCanBeDone(name, ordered);
    return ordered;
  }

  #models(): Set<string> {
    const named = this.#registered.flatMap(({ models }) => [...(models ?? [])]);
    return new Set([anyOtherModel, ...named]);
  }
}

/** `put memory`. */
export function flowName(action: Action, model: string): string {
  return `${actionNames.find((name) => Action[name] === action)} ${model}`;
}

function listOf(names: string | readonly string[] | undefined): readonly string[] {
  if (names === undefined) return [];
  return typeof names === 'string' ? [names] : names;
}

/** Fused tasks of the pod cannot be interrupted, and tasks before them cannot be undone. */
function checkCanBeDone<C>(flow: string, tasks: readonly FlowTask<C>[]): void {
  const fused = tasks.filter((task) => task.fused).map((task) => task.name);
  const ahead = predecessors(tasks, fused);
  const decoded = predecessors(tasks, ['decode']);
  for (const { name, task } of tasks) {
    if (task === undefined) continue;
    if (decoded.has(name)) {
      throw new FlowError(
        `flow ${flow}: ${name} comes before decode, where there is no command yet`,
      );
    }
    if (!ahead.has(name)) continue;
    const behind = predecessors(tasks, [name]);
    const first = fused.find((one) => behind.has(one));
    if (first === undefined) continue;
    const last = fused.findLast((one) => !behind.has(one));
    throw new FlowError(
      `flow ${flow}: ${name} would lie between ${first} and ${last}, but the pod does ` +
        `${fused.join(', ')} in one go: put it before ${fused[0]} or after ${fused.at(-1)}`,
    );
  }
}

// Compiles a flow into its executable form: the pod's fused path, and the extra tasks around it.

import type { Action } from '../../universal-row/command.ts';
import { Flow, newTaskCost, predecessors, type PlacedTask, type TaskCost } from './flow.ts';
import { type FlowRegistry, type FlowTask, flowName } from './flow-registry.ts';

export interface Plan<C> {
  readonly action: Action;
  readonly model: string;
  /** Run once a command, before the fused path. One that fails refuses the command. */
  readonly before: Flow<C> | undefined;
  /** Run after the fused path; the answer waits for them. One that fails becomes the answer. */
  readonly gates: Flow<C> | undefined;
  /**
   * Tasks that run once the answer is final. They cannot change it, and the answer does not wait
   * for them.
   */
  readonly after: Flow<C> | undefined;
  /** Whether an answer may have to wait for a task. */
  readonly mayWait: boolean;
  /** Cost of commands on the fused path. */
  readonly commandCost: TaskCost;
}

/** `undefined` when the flow is the standard one: then there is nothing to run but the fused path. */
export function compile<C>(
  registry: FlowRegistry<C>,
  action: Action,
  model: string,
): Plan<C> | undefined {
  const tasks = registry.flow(action, model);
  const extras = tasks.filter((task) => task.task !== undefined);
  if (extras.length === 0) return undefined;
  const fused = tasks.filter((task) => task.fused).map((task) => task.name);
  const ahead = predecessors(tasks, fused);
  const awaited = predecessors(tasks, ['reply']);
  const name = flowName(action, model);
  const part = (title: string, isIn: (task: FlowTask<C>) => boolean): Flow<C> | undefined => {
    const chosen = extras.filter(isIn);
    return chosen.length === 0 ? undefined : new Flow(`${name} ${title}`, among(chosen));
  };
  const before = part('before', (task) => ahead.has(task.name));
  const gates = part('gates', (task) => awaited.has(task.name) && !ahead.has(task.name));
  const after = part('after', (task) => !awaited.has(task.name) && !ahead.has(task.name));
  return {
    action,
    model,
    before,
    gates,
    after,
    mayWait: before?.mayWait === true || gates?.mayWait === true,
    commandCost: newTaskCost(),
  };
}

/** The tasks with those of their predecessors that are among them. */
function among<C>(tasks: readonly FlowTask<C>[]): PlacedTask<C>[] {
  const names = new Set(tasks.map((task) => task.name));
  return tasks.map(({ after, task }) => ({
    ...task!,
    after: after.filter((one) => names.has(one)),
  }));
}

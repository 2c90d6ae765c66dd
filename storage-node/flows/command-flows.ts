// Commands with extra tasks around them: used by a pod instead of its bare path when there are any.

import type { Command } from '../../universal-row/command.ts';
import { Action } from '../../universal-row/command.ts';
import type { Clock } from '../../universal-row/environment.ts';
import { CommandError } from '../../universal-row/errors.ts';
import type { MaybePromise } from '../../universal-row/maybe-promise.ts';
import type { Reply } from '../../universal-row/reply.ts';
import type { Touched } from '../transaction.ts';
import { compile, type Plan } from './compile.ts';
import type { TaskCost } from './flow.ts';
import type { FlowRegistry } from './flow-registry.ts';
import { FlowCancelled, FlowRun } from './flow-runner.ts';

/** Outcome of a command in the pod. */
export interface Outcome {
  /**
   * done: it ran and answered. waits: it ran and has no answer yet (BLPOP), and will be retried.
   * failed: it ran and answered with an error; its earlier writes stay. refused: it was not run.
   */
  kind: 'done' | 'waits' | 'failed' | 'refused';
  /** The error it was answered with. */
  error: string | undefined;
  /** Index of its log entry; 0 when it wrote nothing. */
  index: number;
  /** Keys it wrote, in order, expired ones it came upon included. */
  touched: readonly Touched[];
}

/** Context passed to the tasks of a pod's flows. */
export interface CommandContext {
  /** Its object and its words are used again for other commands once the answer stands. */
  readonly command: Command;
  readonly model: string;
  /** Known to tasks that come after the pod's own. A gate that fails changes it to its error. */
  readonly outcome: Outcome | undefined;
}

export type CommandFlowRegistry = FlowRegistry<CommandContext>;

/** The pod's own path. */
interface BarePath {
  /**
   * Runs the commands as one. Commands with an outcome already are refused with its error; for the
   * others the outcome is set. Returns the promise to wait for before all of it is run again.
   */
  attempt(
    commands: readonly Command[],
    reply: Reply,
    before: (reply: Reply) => boolean,
    outcomes: (Outcome | undefined)[],
  ): Promise<void> | undefined;
  /** Reports a bug; returns the text to answer. */
  internalError(what: string, error: unknown): string;
}

export interface TaskCostRow extends TaskCost {
  action: Action;
  model: string;
  /** `command` for the pod's own path. */
  task: string;
}

interface Request extends CommandContext {
  outcome: Outcome | undefined;
  readonly plan: Plan<CommandContext>;
  run: FlowRun<CommandContext>;
}

export class CommandFlows {
  /** By action. */
  readonly plans: readonly (Plan<CommandContext> | undefined)[];
  readonly mayWait: boolean;
  private readonly model: string;
  private readonly limits: CommandFlowRegistry['limits'];
  private readonly clock: Clock;
  private readonly pod: BarePath;

  constructor(registry: CommandFlowRegistry, model: string, clock: Clock, pod: BarePath) {
    this.plans = Object.values(Action).map((action) => compile(registry, action, model));
    this.mayWait = this.plans.some((plan) => plan?.mayWait === true);
    this.model = model;
    this.limits = registry.limits;
    this.clock = clock;
    this.pod = pod;
  }

  /** Whether there is anything to run but the pod's own path. */
  get isStandard(): boolean {
    return this.plans.every((plan) => plan === undefined);
  }

  execute(command: Command, reply: Reply): MaybePromise<void> {
    return this.executeAll([command], reply, always);
  }

  executeAll(
    commands: readonly Command[],
    reply: Reply,
    before: (reply: Reply) => boolean,
  ): MaybePromise<void> {
    const requests = commands.map((command) => this.#request(command));
    const waits = this.#runBefore(requests, 0);
    if (waits instanceof Promise) {
      return waits.then(() => this.#runCommands(requests, commands, reply, before));
    }
    return this.#runCommands(requests, commands, reply, before);
  }

  costs(): TaskCostRow[] {
    return this.plans.flatMap((plan) => {
      if (plan === undefined) return [];
      const { action, model, before, gates, after, commandCost } = plan;
      const tasks = [before, gates, after].flatMap(
        (flow) => flow?.tasks.map(({ name }, i) => ({ task: name, ...flow.costs[i]! })) ?? [],
      );
      return [{ task: 'command', ...commandCost }, ...tasks].map((cost) => ({
        action,
        model,
        ...cost,
      }));
    });
  }

  #request(command: Command): Request | undefined {
    const plan = this.plans[command.action];
    if (plan === undefined) return undefined;
    const request: Omit<Request, 'run'> = { command, model: this.model, plan, outcome: undefined };
    return Object.assign(request, { run: this.#newRun(request, this.limits.deadlineMs) });
  }

  #newRun(context: CommandContext, ms: number): FlowRun<CommandContext> {
    const { clock } = this;
    const deadlineAt = ms === Infinity ? Infinity : clock.monotonic() + ms;
    return new FlowRun(context, { clock, deadlineAt, fanOut: this.limits.fanOut });
  }

  /** Runs the first tasks of every command, one command after another. */
  #runBefore(requests: readonly (Request | undefined)[], from: number): MaybePromise<void> {
    for (let i = from; i < requests.length; i++) {
      const request = requests[i];
      if (request?.plan.before === undefined) continue;
      try {
        const waits = request.run.run(request.plan.before);
        if (waits instanceof Promise) {
          return waits
            .catch((error: unknown) => this.#refuse(request, error))
            .then(() => this.#runBefore(requests, i + 1));
        }
      } catch (error) {
        this.#refuse(request, error);
      }
    }
  }

  #refuse(request: Request, error: unknown): void {
    const text = this.#textOf(request, error);
    request.outcome = { kind: 'refused', error: text, index: 0, touched: [] };
  }

  #textOf(request: Request, error: unknown): string {
    if (error instanceof CommandError) return error.message;
    if (error instanceof FlowCancelled) return `ERR ${error.message}`;
    return this.pod.internalError(`a task of command ${request.command.name} failed`, error);
  }

  #runCommands(
    requests: readonly (Request | undefined)[],
    commands: readonly Command[],
    reply: Reply,
    before: (reply: Reply) => boolean,
  ): MaybePromise<void> {
    for (const request of requests) {
      if (request === undefined || request.outcome !== undefined) continue;
      try {
        request.run.throwIfOver();
      } catch (error) {
        this.#refuse(request, error);
      }
    }
    const outcomes = requests.map((request) => request?.outcome);
    let answersAt = -1;
    const startedAt = this.clock.monotonic();
    const waits = this.pod.attempt(
      commands,
      reply,
      () => {
        if (!before(reply)) return false;
        answersAt = reply.mark();
        return true;
      },
      outcomes,
    );
    this.#charge(requests, this.clock.monotonic() - startedAt);
    if (waits !== undefined) {
      return waits.then(
        () => this.#runCommands(requests, commands, reply, before),
        (error: unknown) => {
          // A row that was needed could not be read. The caller gets the failure itself.
          const outcome: Outcome = { kind: 'refused', error: String(error), index: 0, touched: [] };
          for (const request of requests) if (request !== undefined) request.outcome = outcome;
          this.#runAfter(requests);
          throw error;
        },
      );
    }
    if (answersAt < 0) {
      // A watched key changed: nothing was run, and there is nothing to tell.
      for (const request of requests) request?.run.finish();
      return;
    }
    requests.forEach((request, i) => {
      if (request !== undefined) request.outcome = outcomes[i];
    });
    const gates = this.#runGates(requests, 0, reply, answersAt);
    if (gates instanceof Promise) return gates.then(() => this.#runAfter(requests));
    this.#runAfter(requests);
  }

  /** The commands of a transaction share its cost. */
  #charge(requests: readonly (Request | undefined)[], ms: number): void {
    for (const request of requests) {
      if (request === undefined) continue;
      request.plan.commandCost.runs++;
      request.plan.commandCost.busyMs += ms / requests.length;
    }
  }

  /**
   * Runs the conditions that must hold before the answer is sent. If one fails, every command of a
   * transaction answers the failure.
   */
  #runGates(
    requests: readonly (Request | undefined)[],
    from: number,
    reply: Reply,
    answersAt: number,
  ): MaybePromise<void> {
    for (let i = from; i < requests.length; i++) {
      const request = requests[i];
      if (request?.plan.gates === undefined || request.outcome?.kind === 'refused') continue;
      try {
        const waits = request.run.run(request.plan.gates);
        if (waits instanceof Promise) {
          return waits.then(
            () => this.#runGates(requests, i + 1, reply, answersAt),
            (error: unknown) => this.#failAll(requests, request, error, reply, answersAt),
          );
        }
      } catch (error) {
        this.#failAll(requests, request, error, reply, answersAt);
        return;
      }
    }
  }

  #failAll(
    requests: readonly (Request | undefined)[],
    failed: Request,
    error: unknown,
    reply: Reply,
    answersAt: number,
  ): void {
    const text = this.#textOf(failed, error);
    reply.rollback(answersAt);
    for (const request of requests) {
      reply.error(text);
      if (request?.outcome === undefined || request.outcome.kind === 'refused') continue;
      request.outcome = { ...request.outcome, kind: 'failed', error: text };
    }
  }

  #runAfter(requests: readonly (Request | undefined)[]): void {
    for (const request of requests) {
      if (request === undefined) continue;
      const { after } = request.plan;
      if (after === undefined) {
        request.run.finish();
        continue;
      }
      // The answer stands, so no deadline applies any more; and of a command given up they are told too.
      request.run.deadlineAt = Infinity;
      const run = request.run.cancelled ? this.#newRun(request, Infinity) : request.run;
      const end = (): void => run.finish();
      const failed = (error: unknown): void => {
        this.pod.internalError(`a task after command ${request.command.name} failed`, error);
        end();
      };
      try {
        const waits = run.run(after);
        if (waits instanceof Promise) waits.then(end, failed);
        else end();
      } catch (error) {
        failed(error);
      }
    }
  }
}

function always(): boolean {
  return true;
}

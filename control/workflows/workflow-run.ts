// Runs one workflow to its end: forward step by step, or back through the completed steps. Progress
// is saved after each step, so that another process can continue.

import type { Json } from '../metadata/document-store.ts';
import { type Timers, backOff, pause } from './timers.ts';
import {
  type ActionStep,
  type NestStep,
  type RunState,
  type StepContext,
  type WorkflowDefinition,
  type WorkflowDocument,
  WorkflowError,
} from './workflow.ts';

export interface RetryPolicy {
  firstMs: number;
  mostMs: number;
  /** Failures of one compensation before the workflow is parked. */
  compensations: number;
}

interface WorkflowRunOptions {
  id: string;
  /** Changed by the run, and saved by `save`. */
  document: WorkflowDocument;
  definition: (kind: string) => WorkflowDefinition | undefined;
  /** Resolves once the current document is durable. Rejects with `LeaseLost`. */
  save: () => Promise<void>;
  /** Locks further resources and saves. Rejects if an older workflow holds one of the locks. */
  lock: (resources: readonly string[]) => Promise<void>;
  /** Whether cancellation was asked for. */
  isCancelled: () => boolean;
  signal: AbortSignal;
  timers: Timers;
  retry: RetryPolicy;
  report: (message: string) => void;
}

/** The lease was lost: another process runs the workflow, or may run it by now. */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost';
}

class Parked extends Error {}

// The whole tree is one document.
const mostOutputBytes = 64 * 1024;
const mostNested = 10_000;

export class WorkflowRun {
  readonly #options: WorkflowRunOptions;
  readonly #document: WorkflowDocument;
  /** Whether a parallel step has failed. Its siblings then begin no further steps. */
  #hasFailed = false;

  constructor(options: WorkflowRunOptions) {
    this.#options = options;
    this.#document = options.document;
  }

  /** Leaves the document `done`, `rolled-back` or `parked`, unsaved. Rejects with `LeaseLost`. */
  async run(): Promise<void> {
    if (this.#document.status === 'running') await this.#tryForward();
    if (this.#document.status !== 'compensating') return;
    try {
      await this.#backward(this.#document);
      this.#document.status = 'rolled-back';
    } catch (error) {
      if (!(error instanceof Parked)) throw error;
      this.#document.status = 'parked';
    }
  }

  async #tryForward(): Promise<void> {
    try {
      await this.#forward(this.#document);
      this.#document.status = 'done';
    } catch (error) {
      if (error instanceof LeaseLost) throw error;
      this.#document.error = messageOf(error);
      // Past the point of no return only a wrong definition leads here.
      this.#document.status = this.#document.isForwardOnly ? 'parked' : 'compensating';
      if (this.#document.status === 'compensating') await this.#options.save();
    }
  }

  // ---- forward

  async #forward(run: RunState): Promise<void> {
    for (const step of this.#definition(run.kind).steps) {
      if (run.steps[step.name]?.status === 'done') continue;
      this.#mayBegin();
      if ('run' in step) await this.#act(run, step);
      else await this.#nest(run, step);
    }
  }

  #mayBegin(): void {
    this.#owned();
    if (this.#document.isForwardOnly) return;
    if (this.#options.isCancelled()) throw new Error('it was cancelled');
    if (this.#hasFailed) throw new Error('a step beside it failed');
  }

  async #act(run: RunState, step: ActionStep): Promise<void> {
    if (step.isPointOfNoReturn === true && !this.#document.isForwardOnly) {
      this.#document.isForwardOnly = true;
      await this.#options.save();
    }
    const output = await this.#attempt(
      step.name,
      async () => checkedOutput(await step.run(this.#context(run))),
      step.attempts,
    );
    run.steps[step.name] = output === undefined ? { status: 'done' } : { status: 'done', output };
    await this.#options.save();
  }

  async #nest(run: RunState, step: NestStep): Promise<void> {
    const state = (run.steps[step.name] ??= await this.#plan(run, step));
    const nested = state.nested ?? [];
    if (step.isParallel === true) await this.#allForward(nested);
    else for (const each of nested) await this.#forward(each);
    state.status = 'done';
    await this.#options.save();
  }

  async #plan(run: RunState, step: NestStep): Promise<RunState['steps'][string]> {
    const planned = await this.#attempt(step.name, () => step.nest(this.#context(run)), 1);
    if (planned.length > mostNested) {
      throw new Error(
        `${step.name} has ${planned.length} nested workflows, more than ${mostNested}`,
      );
    }
    const nested = planned.map(({ kind, input }) => ({ kind, input, steps: {} }));
    const resources = nested.flatMap(({ kind, input }) => [
      ...this.#definition(kind).resources(input),
    ]);
    const held = new Set(this.#document.resources);
    const missing = [...new Set(resources)].filter((resource) => !held.has(resource));
    if (missing.length > 0) {
      if (this.#document.isForwardOnly) {
        throw new Error(`${missing.join(', ')} must be locked before the point of no return`);
      }
      await this.#options.lock(missing);
    }
    const state = { status: 'planned', nested } as const;
    run.steps[step.name] = state;
    await this.#options.save();
    return state;
  }

  /** Waits for all of them, so that no step runs while completed ones are undone. */
  async #allForward(nested: readonly RunState[]): Promise<void> {
    const outcomes = await Promise.allSettled(
      nested.map((each) =>
        this.#forward(each).catch((error: unknown) => {
          this.#hasFailed = true;
          throw error;
        }),
      ),
    );
    const failures = outcomes.flatMap((outcome) =>
      outcome.status === 'rejected' ? [outcome.reason as unknown] : [],
    );
    const lost = failures.find((failure) => failure instanceof LeaseLost);
    if (failures.length > 0) throw lost ?? failures[0];
  }

  /** Tries until it succeeds past the point of no return, and `attempts` times before. */
  async #attempt<T>(name: string, run: () => Promise<T>, attempts = 1): Promise<T> {
    for (let failures = 1; ; failures++) {
      try {
        const result = await run();
        this.#owned();
        return result;
      } catch (error) {
        this.#owned();
        if (!this.#document.isForwardOnly && failures >= attempts) throw error;
        await this.#failed(name, error, failures);
      }
    }
  }

  // ---- back

  async #backward(run: RunState): Promise<void> {
    const { steps } = this.#definition(run.kind);
    for (const step of this.#begun(run).reverse()) {
      const state = run.steps[step.name];
      if (state?.status === 'undone') continue;
      if ('run' in step) await this.#undo(run, step);
      else for (const each of [...(state?.nested ?? [])].reverse()) await this.#backward(each);
      run.steps[step.name] = { ...state, status: 'undone' };
      // The last step is saved together with the next change.
      if (step !== steps[0] || run !== this.#document) await this.#options.save();
    }
  }

  /** Steps that have finished, and the one that may have begun. */
  #begun(run: RunState): WorkflowDefinition['steps'][number][] {
    const { steps } = this.#definition(run.kind);
    const known = steps.filter(({ name }) => run.steps[name] !== undefined);
    const isGoingBack = known.some(({ name }) => run.steps[name]!.status === 'undone');
    return isGoingBack ? known : steps.slice(0, known.length + 1);
  }

  async #undo(run: RunState, step: ActionStep): Promise<void> {
    if (step.compensate === undefined) return;
    for (let failures = 1; ; failures++) {
      this.#owned();
      try {
        await step.compensate(this.#context(run));
        this.#owned();
        return;
      } catch (error) {
        this.#owned();
        if (failures >= this.#options.retry.compensations) {
          this.#document.error = `${step.name} cannot be undone: ${messageOf(error)}`;
          throw new Parked();
        }
        await this.#failed(`undoing ${step.name}`, error, failures);
      }
    }
  }

  // ---- both

  async #failed(what: string, error: unknown, failures: number): Promise<void> {
    const { id, report, timers, retry, signal } = this.#options;
    const message = `${what} failed: ${messageOf(error)}`;
    if (this.#document.error !== message) {
      report(`workflow ${id}: ${message}`);
      this.#document.error = message;
      await this.#options.save();
    }
    await pause(timers, backOff(failures, retry.firstMs, retry.mostMs), signal);
    this.#owned();
  }

  #owned(): void {
    if (this.#options.signal.aborted) throw new LeaseLost('another process may have it');
  }

  #context(run: RunState): StepContext {
    const { id: workflow, signal } = this.#options;
    const outputs: StepContext['outputs'] = Object.fromEntries(
      Object.entries(run.steps).flatMap(([name, { output }]) =>
        output === undefined ? [] : [[name, output]],
      ),
    );
    return { workflow, input: run.input, outputs, signal };
  }

  #definition(kind: string): WorkflowDefinition {
    const found = this.#options.definition(kind);
    if (found === undefined) throw new WorkflowError('missing', `there is no workflow ${kind}`);
    return found;
  }
}

function checkedOutput(output: Json | void): Json | undefined {
  if (output === undefined) return undefined;
  const bytes = Buffer.byteLength(JSON.stringify(output));
  if (bytes > mostOutputBytes) {
    throw new Error(`an output has ${bytes} bytes, more than ${mostOutputBytes}`);
  }
  return output;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

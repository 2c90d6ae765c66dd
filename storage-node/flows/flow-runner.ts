// Runs flows. As long as no task waits this is a loop over an array; the first one that waits makes
// a promise, and from there on tasks begin as their predecessors end.

import type { Clock } from '../../universal-row/environment.ts';
import type { MaybePromise } from '../../universal-row/maybe-promise.ts';
import { type Flow, type FlowControl, FlowError, type TaskCost } from './flow.ts';

/** Why a flow went no further although no task failed: its time was up, or its caller gave up. */
export class FlowCancelled extends Error {
  override readonly name = 'FlowCancelled';
}

interface RunLimits {
  clock: Clock;
  /** On that clock's monotonic time; Infinity for none. */
  deadlineAt: number;
  /** Tasks that wait at the same time. */
  fanOut: number;
}

interface Hold {
  left: number;
  giveBack: (unused: number) => void;
}

const maxTimerMs = 2 ** 31 - 1;

/** One request that passes through one flow, or through several in turn. */
export class FlowRun<C> implements FlowControl {
  readonly context: C;
  deadlineAt: number;
  private readonly clock: Clock;
  private readonly fanOut: number;
  private cancelledBy: Error | undefined;
  private waiting: WaitingFlow<C> | undefined;
  private controller: AbortController | undefined;
  private holds: Hold[] | undefined;

  constructor(context: C, limits: RunLimits) {
    this.context = context;
    this.clock = limits.clock;
    this.deadlineAt = limits.deadlineAt;
    this.fanOut = limits.fanOut;
  }

  get cancelled(): boolean {
    return this.cancelledBy !== undefined;
  }

  get signal(): AbortSignal {
    if (this.controller === undefined) {
      this.controller = new AbortController();
      if (this.cancelledBy !== undefined) this.controller.abort(this.cancelledBy);
    }
    return this.controller.signal;
  }

  /**
   * Runs every task of the flow. Throws or rejects with the error of the first that fails, or
   * `FlowCancelled`; either cancels the run.
   */
  run(flow: Flow<C>): MaybePromise<void> {
    const { tasks, costs } = flow;
    const { clock } = this;
    let at = clock.monotonic();
    for (let i = 0; i < tasks.length; i++) {
      this.throwIfOver(at);
      const task = tasks[i]!;
      const cost = costs[i]!;
      cost.runs++;
      let result: MaybePromise<void>;
      try {
        result = task.run(this.context, this);
      } catch (error) {
        cost.failures++;
        throw this.#stop(error as Error);
      }
      const now = clock.monotonic();
      cost.busyMs += now - at;
      at = now;
      if (result instanceof Promise) return this.#wait(flow, i, result, at);
    }
    if (this.cancelledBy !== undefined) throw this.cancelledBy;
  }

  /** Stops the flow: tasks that wait are told by `signal`, none begins any more, tokens go back. */
  cancel(reason: Error = new FlowCancelled('cancelled')): void {
    this.#stop(reason);
  }

  /** Throws when the run is cancelled, or should be because its time is up. */
  throwIfOver(now = this.clock.monotonic()): void {
    if (this.cancelledBy !== undefined) throw this.cancelledBy;
    if (now > this.deadlineAt) throw this.#stop(timeIsUp());
  }

  reserve(tokens: number, giveBack: (unused: number) => void): void {
    if (this.cancelledBy !== undefined) giveBack(tokens);
    else (this.holds ??= []).push({ left: tokens, giveBack });
  }

  spend(tokens: number): number {
    let due = tokens;
    for (const hold of this.holds ?? []) {
      const taken = Math.min(due, hold.left);
      hold.left -= taken;
      due -= taken;
    }
    return due;
  }

  /** The request is dealt with: tokens that were not spent go back. */
  finish(): void {
    const { holds } = this;
    if (holds === undefined) return;
    this.holds = undefined;
    for (const hold of holds) if (hold.left > 0) hold.giveBack(hold.left);
  }

  #stop(reason: Error): Error {
    if (this.cancelledBy !== undefined) return this.cancelledBy;
    this.cancelledBy = reason;
    this.finish();
    this.waiting?.stop(reason);
    this.controller?.abort(reason);
    return reason;
  }

  #wait(flow: Flow<C>, index: number, result: Promise<void>, now: number): Promise<void> {
    if (this.cancelledBy !== undefined) {
      result.catch(() => {});
      throw this.cancelledBy;
    }
    const waiting = new WaitingFlow(this, flow, this.clock, this.fanOut);
    this.waiting = waiting;
    let timer: NodeJS.Timeout | undefined;
    if (this.deadlineAt !== Infinity) {
      const left = Math.min(Math.max(0, Math.ceil(this.deadlineAt - now)), maxTimerMs);
      timer = setTimeout(() => this.#stop(timeIsUp()), left);
    }
    return waiting.from(index, result, now).finally(() => {
      clearTimeout(timer);
      this.waiting = undefined;
    });
  }
}

function timeIsUp(): FlowCancelled {
  return new FlowCancelled('the command took longer than it may');
}

/** The rest of a flow in which a task waits. */
class WaitingFlow<C> {
  readonly #run: FlowRun<C>;
  readonly #flow: Flow<C>;
  readonly #clock: Clock;
  readonly #fanOut: number;
  readonly #all: number;
  // Sets of tasks, a bit each.
  #begun = 0;
  #done = 0;
  #waitingTasks = 0;
  #over = false;
  #resolve: () => void = () => {};
  #reject: (reason: Error) => void = () => {};

  constructor(run: FlowRun<C>, flow: Flow<C>, clock: Clock, fanOut: number) {
    this.#run = run;
    this.#flow = flow;
    this.#clock = clock;
    this.#fanOut = fanOut;
    this.#all = lowBits(flow.tasks.length);
  }

  /** Those before `index` are done, and that one waits for `result`. */
  from(index: number, result: Promise<void>, now: number): Promise<void> {
    this.#done = lowBits(index);
    this.#begun = this.#done | (1 << index);
    const end = new Promise<void>((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    if (this.#await(index, result, now)) this.#beginMore();
    return end;
  }

  stop(reason: Error): void {
    if (this.#over) return;
    this.#over = true;
    const waiting = this.#begun & ~this.#done;
    this.#flow.costs.forEach((cost, i) => {
      if (waiting & (1 << i)) cost.cancelled++;
    });
    this.#reject(reason);
  }

  /** Begins all ready tasks. One pass suffices: a task only ever follows earlier ones. */
  #beginMore(): void {
    const { tasks, needs, costs } = this.#flow;
    for (let i = 0; i < tasks.length && !this.#over; i++) {
      const bit = 1 << i;
      if (this.#begun & bit || (needs[i]! & this.#done) !== needs[i]) continue;
      if (this.#waitingTasks >= this.#fanOut) return;
      this.#begun |= bit;
      const cost = costs[i]!;
      const startedAt = this.#clock.monotonic();
      cost.runs++;
      try {
        const result = tasks[i]!.run(this.#run.context, this.#run);
        const now = this.#clock.monotonic();
        cost.busyMs += now - startedAt;
        if (!(result instanceof Promise)) this.#done |= bit;
        else if (!this.#await(i, result, now)) return;
      } catch (error) {
        this.#fail(i, error as Error);
        return;
      }
    }
    if (this.#done === this.#all && !this.#over) {
      this.#over = true;
      this.#resolve();
    }
  }

  #await(index: number, result: Promise<void>, since: number): boolean {
    const task = this.#flow.tasks[index]!;
    if (task.mayWait !== true) {
      result.catch(() => {});
      this.#fail(index, new FlowError(`task ${task.name} waits, but does not say that it may`));
      return false;
    }
    const cost: TaskCost = this.#flow.costs[index]!;
    this.#waitingTasks++;
    result.then(
      () => {
        if (this.#over) return;
        cost.waitMs += this.#clock.monotonic() - since;
        this.#waitingTasks--;
        this.#done |= 1 << index;
        this.#beginMore();
      },
      (error: unknown) => {
        if (!this.#over) this.#fail(index, error as Error);
      },
    );
    return true;
  }

  #fail(index: number, error: Error): void {
    this.#flow.costs[index]!.failures++;
    this.#done |= 1 << index;
    this.#run.cancel(error);
  }
}

function lowBits(count: number): number {
  // A shift by 31 is the most a signed 32-bit set of 31 tasks needs.
  return count === 0 ? 0 : -1 >>> (32 - count);
}

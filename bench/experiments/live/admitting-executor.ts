// Admission before a pod, as a Redis server meets it: the buckets say who is taken on, the fair queue in which order,
// the slots how many at a time. The most that can stand in front of a pod, to see what it costs.

import { CpuSlots } from '../baselines/cpu-slots.ts';
import { FairQueue } from '../../../storage-node/admission/fair-queue.ts';
import { PodBuckets } from '../../../storage-node/admission/pod-buckets.ts';
import { type Command, isWrite } from '../../../universal-row/command.ts';
import type { Executor, Refusable, RowObserver } from '../../../universal-row/executor.ts';
import type { MaybePromise } from '../../../universal-row/maybe-promise.ts';
import type { Reply } from '../../../universal-row/reply.ts';

const tenants = 10;
const readCost = 1;
const writeCost = 2;

export interface AdmissionOptions {
  /** Units a second that the pod is taken to be able to do. */
  podRate: number;
  /** Requests that stand in the queue all the time, behind whatever comes, as where more come than can be served. */
  standing: number;
}

/** Of those who stand in the queue; their turn is far off. */
const lastTenant = -1;
const lastWeight = 1e-12;
const standingCommand = {} as Command;

export class AdmittingExecutor implements Executor {
  readonly #pod: Executor;
  readonly #slots = new CpuSlots();
  #queue = new FairQueue<Command>();
  #buckets = new PodBuckets({ podRate: Infinity }, 0);
  #next = 0;
  /** A few milliseconds old at most, which is little to a bucket; reading the clock costs more than asking one. */
  #now = performance.now();
  refused = 0;

  constructor(pod: Executor) {
    this.#pod = pod;
    this.set({ podRate: 1e12, standing: 0 });
  }

  /** As if begun anew. */
  set({ podRate, standing }: AdmissionOptions): void {
    this.#buckets = new PodBuckets({ podRate }, this.#now);
    this.#queue = new FairQueue({ credit: podRate / 10 });
    for (let tenant = 0; tenant < tenants; tenant++) {
      this.#buckets.setTenant(tenant, podRate / tenants, this.#now);
      this.#queue.setWeight(tenant, 1 / tenants);
    }
    this.#queue.setWeight(lastTenant, lastWeight);
    for (let n = 0; n < standing; n++) this.#queue.push(lastTenant, 1, standingCommand);
    this.refused = 0;
  }

  execute(command: Command, reply: Reply): MaybePromise<Reply | void> {
    const now = this.#now;
    const tenant = this.#next;
    this.#next = tenant + 1 === tenants ? 0 : tenant + 1;
    const cost = isWrite(command.action) ? writeCost : readCost;
    if (this.#buckets.admit(tenant, cost, now) === 'no') {
      this.refused++;
      reply.error('TRYAGAIN RU limit: retry_after_ms=1');
      return undefined;
    }
    let next = command;
    if (this.#queue.length > 0) {
      this.#queue.push(tenant, cost, command);
      next = this.#queue.pop()!;
      if (next === standingCommand) throw new Error('who came was not before who stands');
    }
    // The pod runs a command at once, whole: a slot is always free again by the next.
    if (!this.#slots.take()) throw new Error('no slot');
    const done = this.#pod.execute(next, reply);
    if (done instanceof Promise) return done.finally(() => this.#slots.free());
    this.#slots.free();
    return undefined;
  }

  executeAll(
    commands: readonly Command[],
    reply: Reply,
    before: (reply: Reply) => boolean,
  ): MaybePromise<Reply | void> {
    return this.#pod.executeAll(commands, reply, before);
  }

  refusal(command: Refusable): string | undefined {
    return this.#pod.refusal(command);
  }

  observe(table: number, key: Buffer, observer: RowObserver): void {
    this.#pod.observe(table, key, observer);
  }

  unobserve(table: number, key: Buffer, observer: RowObserver): void {
    this.#pod.unobserve(table, key, observer);
  }

  endTurn(): number {
    return this.#pod.endTurn();
  }

  whenSafe(position: number, then: () => void): void {
    this.#pod.whenSafe(position, then);
  }

  /** To be called every few milliseconds, with how late that was. */
  tick(now: number, lagMs: number): void {
    this.#now = now;
    this.#slots.adjust(lagMs);
  }
}

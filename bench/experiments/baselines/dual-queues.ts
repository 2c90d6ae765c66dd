// The queues of a pod, put together: a write first waits for tokens of the store, then all work for a slot of the
// processor, then what the cache does not have for a worker that reads the disk. Each rule may be left out.
//
// The path of who need not wait is made of numbers: `tryEnter` and, when the work is done, `leave`. Only after a
// refusal an object is made, which waits (`wait`), and is handed out by `next` when it is its turn, with its place
// taken. After each `leave`, and every millisecond while something waits, `next` is to be called until it has nothing.

import { CpuLimits, type CpuLimitsOptions } from '../../../storage-node/admission/cpu-limits.ts';
import { CpuPlaces, type TenantCapOptions, tenantCapDefaults } from './cpu-places.ts';
import type { CpuSlots } from './cpu-slots.ts';
import {
  IoWorkers,
  type IoWorkersOptions,
  ioWorkersDefaults,
} from '../../../storage-node/admission/io-workers.ts';
import {
  type KindSharesOptions,
  kindSharesDefaults,
} from '../../../storage-node/admission/kind-shares.ts';
import {
  type BackgroundOptions,
  backgroundDefaults,
  type LayerWork,
  QueueLayer,
} from '../../../storage-node/admission/queue-layer.ts';
import {
  TenantQueue,
  type TenantQueueOptions,
  tenantQueueDefaults,
} from '../../../storage-node/admission/tenant-queue.ts';
import type { WorkKind } from '../../../storage-node/admission/work-kind.ts';

/** Work that waits. */
export interface PodWork extends LayerWork {
  /** Logical request units. */
  readonly cost: number;
  /** To be written, as the store counts it; 0 for what is no write. */
  readonly bytes: number;
  /** Reads of the disk, where the cache does not have it. */
  readonly operations: number;
  /** Whether its transaction holds locks. */
  holdsLocks: boolean;
}

/** Tokens of the store. However large a piece, it is let through in the end. */
export interface WriteGate {
  admit(bytes: number, now: number): boolean;
}

export interface DualQueuesOptions extends TenantQueueOptions {
  /** Slots of the processor, whose number follows its load; false for no limit. */
  slots: CpuSlots | false;
  /** Lines by kind of work and their shares; false for one line. */
  kinds: KindSharesOptions | false;
  /** What is under way in the processor, by kind; false for no limits. Only with `kinds`. */
  limits: Partial<CpuLimitsOptions> | false;
  /** What one tenant may have of the slots; false for all. */
  tenantCap: TenantCapOptions | false;
  workers: IoWorkersOptions;
  /** What work costs that waits for a worker: its reads of the disk, or its units as before. */
  ioCost: 'operations' | 'units';
  /** Background work at low priority; false for background work in line with clients' large writes. */
  background: BackgroundOptions | false;
  /** Which queue a write passes first. A slot that waits for the store is one less for reads. */
  firstQueue: 'store' | 'cpu';
  /** Of work whose transaction holds locks, unless its own is higher; false to leave it as it is. */
  lockPriority: number | false;
}

export const dualQueuesDefaults: Omit<DualQueuesOptions, 'slots'> = {
  ...tenantQueueDefaults,
  kinds: kindSharesDefaults,
  limits: {},
  tenantCap: tenantCapDefaults,
  workers: ioWorkersDefaults,
  ioCost: 'operations',
  background: backgroundDefaults,
  firstQueue: 'store',
  lockPriority: 100,
};

export class DualQueues<W extends PodWork> {
  readonly #options: DualQueuesOptions;
  readonly #gate: WriteGate | undefined;
  readonly #limits: CpuLimits | undefined;
  readonly #expired: (work: W) => void;
  readonly #store: TenantQueue<W>;
  readonly #cpu: QueueLayer<W>;
  readonly #io: QueueLayer<W>;
  /** The first that waits for tokens, which there were not enough of. */
  #storeHead: W | undefined;
  /** What waits for tokens with a slot taken, where slots come first. */
  readonly #stalled = new Set<W>();
  readonly #tenants = new Set<number>();
  /** Of the last call of `next`. */
  #now: number;

  /** `expired` is told of work whose deadline was past when its turn came: it holds nothing, and never will. */
  constructor(
    options: Pick<DualQueuesOptions, 'slots'> & Partial<DualQueuesOptions>,
    gate: WriteGate | undefined,
    expired: (work: W) => void,
    now: number,
  ) {
    const all = { ...dualQueuesDefaults, ...options };
    this.#options = all;
    this.#gate = gate;
    this.#expired = expired;
    this.#now = now;
    this.#limits = all.limits === false ? undefined : new CpuLimits(all.limits);
    this.#store = new TenantQueue(
      (work) => work.bytes,
      (work) => this.#expire(work),
      all,
    );
    const shared = {
      queue: all,
      expired,
      kinds: all.kinds || undefined,
      background: all.background || undefined,
    };
    this.#cpu = new QueueLayer(
      {
        ...shared,
        places: new CpuPlaces(all.slots || undefined, all.tenantCap || undefined),
        costOf: (work) => work.cost,
        limits: this.#limits,
      },
      now,
    );
    this.#io = new QueueLayer(
      {
        ...shared,
        places: new IoWorkers(all.workers),
        costOf: all.ioCost === 'units' ? (work) => work.cost : (work) => work.operations,
      },
      now,
    );
  }

  /** How much waits for tokens or a slot; `ioLength` is how much waits for a worker. */
  get length(): number {
    return this.#store.length + (this.#storeHead === undefined ? 0 : 1) + this.#cpu.length;
  }

  get ioLength(): number {
    return this.#io.length;
  }

  /** Slots and workers in use. */
  get used(): number {
    return this.#cpu.places.used;
  }

  get ioUsed(): number {
    return this.#io.places.used;
  }

  /** The quota of the tenant's partitions here. Of a tenant without one nothing may come. */
  setTenant(tenant: number, quota: number): void {
    this.#tenants.add(tenant);
    for (const queue of [this.#store, this.#cpu, this.#io]) queue.setWeight(tenant, quota);
  }

  /** Of a tenant of which nothing waits or is under way. */
  forget(tenant: number): void {
    this.#tenants.delete(tenant);
    for (const queue of [this.#store, this.#cpu, this.#io]) queue.forget(tenant);
  }

  knows(tenant: number): boolean {
    return this.#tenants.has(tenant);
  }

  /** Whether the store compacts, or collects garbage. */
  setCompacting(isCompacting: boolean): void {
    if (this.#limits !== undefined) this.#limits.isCompacting = isCompacting;
  }

  /** Whether work may begin at once: it then has a slot, and is to `leave` with the same numbers. */
  tryEnter(kind: WorkKind, tenant: number, cost: number, bytes: number, now: number): boolean {
    this.#cpu.asked(kind, tenant, now);
    if (!this.#cpu.mayBegin(kind, tenant, now)) return false;
    if (bytes > 0 && this.#gate !== undefined) {
      if (this.#store.length > 0 || this.#storeHead !== undefined) return false;
      if (!this.#gate.admit(bytes, now)) return false;
    }
    this.#cpu.pass(kind, tenant, cost, now);
    return true;
  }

  /** What could not enter waits. */
  wait(work: W, now: number): void {
    if (work.holdsLocks) this.#raise(work, 0);
    if (this.#gate !== undefined && work.bytes > 0 && this.#options.firstQueue === 'store') {
      this.#store.push(work, now);
    } else this.#cpu.push(work, now);
  }

  /** The next that is to begin, with its slot; undefined when none may now. */
  next(now: number): W | undefined {
    this.#now = now;
    if (this.#options.firstQueue === 'store') {
      for (let work = this.#fromStore(now); work !== undefined; work = this.#fromStore(now)) {
        this.#cpu.push(work, now);
      }
      return this.#cpu.take(now);
    }
    const waited = this.#fromStore(now);
    if (waited !== undefined) return waited;
    for (let work = this.#cpu.take(now); work !== undefined; work = this.#cpu.take(now)) {
      if (this.#gate === undefined || work.bytes === 0) return work;
      this.#stalled.add(work);
      this.#store.push(work, now);
      const first = this.#fromStore(now);
      if (first !== undefined) return first;
    }
    return undefined;
  }

  /** The processor has done its part. */
  leave(kind: WorkKind, tenant: number, cost: number, now: number): void {
    this.#cpu.ended(kind, tenant, cost, now);
  }

  /** As `tryEnter`, for a worker that reads what the cache does not have. `cost` is its units. */
  tryRead(kind: WorkKind, tenant: number, cost: number, operations: number, now: number): boolean {
    this.#io.asked(kind, tenant, now);
    if (!this.#io.mayBegin(kind, tenant, now)) return false;
    this.#io.pass(kind, tenant, this.#options.ioCost === 'units' ? cost : operations, now);
    return true;
  }

  waitRead(work: W, now: number): void {
    this.#io.push(work, now);
  }

  nextRead(now: number): W | undefined {
    return this.#io.take(now);
  }

  leaveRead(kind: WorkKind, tenant: number, now: number): void {
    this.#io.ended(kind, tenant, 0, now);
  }

  /**
   * The transaction of work has got locks, or work of such a priority waits for one of its locks: it goes before all
   * that is not raised, and so does what the transaction sends after it.
   */
  raise(work: W, priority = 0): void {
    work.holdsLocks = true;
    if (this.#raise(work, priority)) work.ticket?.move();
  }

  /** The transaction of work has begun later than was thought: protocols may advance its time. */
  restart(work: W, startedAt: number): void {
    work.startedAt = startedAt;
    work.ticket?.move();
  }

  /** Work that waits for its slot or worker is not wanted any more. Whether it waited. */
  withdraw(work: W, now: number): boolean {
    if (work === this.#storeHead) this.#storeHead = undefined;
    else if (work.ticket === undefined) return false;
    else work.ticket.withdraw();
    this.#release(work, now);
    return true;
  }

  /** To be called every few milliseconds while something waits: whether it is overload. */
  tick(now: number): void {
    this.#store.tick(now);
    this.#cpu.tick(now);
    this.#io.tick(now);
  }

  #raise(work: W, priority: number): boolean {
    const { lockPriority } = this.#options;
    if (lockPriority === false) return false;
    const raised = Math.max(work.priority, lockPriority, priority);
    if (raised === work.priority) return false;
    work.priority = raised;
    return true;
  }

  /** The next write for which there are tokens, which are taken. */
  #fromStore(now: number): W | undefined {
    for (;;) {
      const head = this.#storeHead ?? this.#store.pop(now);
      this.#storeHead = head;
      if (head === undefined) return undefined;
      if (head.deadline > now) {
        if (!this.#gate!.admit(head.bytes, now)) return undefined;
        this.#storeHead = undefined;
        this.#stalled.delete(head);
        return head;
      }
      this.#storeHead = undefined;
      this.#expire(head);
    }
  }

  #expire(work: W): void {
    this.#release(work, this.#now);
    this.#expired(work);
  }

  /** The slot of work that will not begin, if it has one. */
  #release(work: W, now: number): void {
    if (!this.#stalled.delete(work)) return;
    this.#cpu.ended(work.kind, work.tenant, work.cost, now);
  }
}

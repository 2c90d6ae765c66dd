// The admission stage of the pods of one thread: first the admission queue of the pod, if it has one, then the CPU
// scheduler. Policies of partitions and of the disk have objects of their own (partition/, disk/).

import type { AdmitResult, PodAdmission, PodRequest } from '../../contracts/pod-admission.ts';
import { CpuScheduler, type CpuSchedulerOptions } from './cpu/cpu-scheduler.ts';
import { AdmissionQueue, type AdmissionQueueOptions } from './pod/admission-queue.ts';

interface AdmissionControllerOptions extends CpuSchedulerOptions {
  /** Priority of the writes to a database. Absent: there is no admission queue, batches are scheduled by CPU time only. */
  priorityOf?: AdmissionQueueOptions['priorityOf'];
}

export class AdmissionController implements PodAdmission {
  readonly cpu: CpuScheduler;
  readonly queue: AdmissionQueue | undefined;

  constructor({ priorityOf, ...options }: AdmissionControllerOptions) {
    this.cpu = new CpuScheduler(options);
    this.queue =
      priorityOf &&
      new AdmissionQueue({
        clock: options.clock,
        priorityOf,
        ended: (request, isAdmitted) => this.#leftQueue(request, isAdmitted),
      });
    const { clock } = options;
    this.#now = () => clock.monotonic();
  }

  readonly #now: () => number;

  beginTick(now: number): void {
    this.cpu.beginTick(now);
  }

  admit(request: PodRequest, now: number): AdmitResult {
    const { cpu, queue } = this;
    if (request.kind !== 'batch' && queue?.isActive === true) {
      // While the pod has capacity to spare, the cost of a write is debited soon enough when it is charged. A query may run
      // for long.
      const isQueued = request.kind === 'read' || !queue.isUncongested;
      cpu.note(request.tenant, now);
      if (isQueued && !queue.mayBegin(request, now)) {
        return queue.wait(request, now) ? 'queued' : 'refused';
      }
    }
    if (cpu.mayRun(request.tenant, now)) return 'admitted';
    cpu.enqueue(request);
    return 'queued';
  }

  #leftQueue(request: PodRequest, isAdmitted: boolean): void {
    // The queue has its own order and pace: it is not queued for the thread besides. Its time slices are scheduled.
    if (isAdmitted) this.cpu.began(request.tenant, this.#now());
    request.resume(isAdmitted);
  }

  requeue(request: PodRequest): void {
    this.cpu.enqueue(request);
  }

  leave(request: PodRequest): boolean {
    return this.queue?.leave(request) === true;
  }

  charge(request: PodRequest, units: number, now: number): void {
    this.queue?.settle(request, units, now);
  }

  spent(tenant: number, ms: number): void {
    this.cpu.spent(tenant, ms);
  }

  isContended(now: number): boolean {
    return this.cpu.isContended(now);
  }

  isSliceOver(now: number): boolean {
    return this.cpu.isSliceOver(now);
  }
}

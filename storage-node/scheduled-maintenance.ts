// Maintenance of a pod in the CPU scheduler: it runs when no tenant's batch is queued, and else in time slices of a small
// weight, or of a tenant's weight while requests wait for it.

import { type MaintenanceSlices, uncontendedSliceMs } from '../contracts/maintenance-slices.ts';
import {
  backgroundWork,
  batchRequest,
  contendedSliceMs,
  type PodAdmission,
  urgentBackgroundWork,
} from '../contracts/pod-admission.ts';
import type { Clock } from '../universal-row/environment.ts';

/** Slices of the scheduler that one slice of maintenance takes while requests wait for it. */
const urgentSlices = 4;

export class ScheduledMaintenance implements MaintenanceSlices {
  readonly #admission: PodAdmission | undefined;
  readonly #clock: Clock;

  constructor(admission: PodAdmission | undefined, clock: Clock) {
    this.#admission = admission;
    this.#clock = clock;
  }

  get isContended(): boolean {
    return this.#admission?.isContended(this.#clock.monotonic()) === true;
  }

  /** Runs a slice now, or when the scheduler resumes it. */
  start(isUrgent: boolean, slice: () => void): void {
    const request = batchRequest(isUrgent ? urgentBackgroundWork : backgroundWork, slice);
    const result = this.#admission?.admit(request, this.#clock.monotonic()) ?? 'admitted';
    if (result === 'admitted') slice();
  }

  run<T>(isUrgent: boolean, work: (sliceMs: number) => T): Promise<T> {
    return new Promise((resolve, reject) => {
      const slice = (): void => {
        try {
          resolve(work(this.sliceMs(isUrgent, uncontendedSliceMs)));
        } catch (error) {
          reject(error);
        }
      };
      setImmediate(() => this.start(isUrgent, slice));
    });
  }

  /** Milliseconds of a slice; `aloneMs` while no tenants compete. */
  sliceMs(isUrgent: boolean, aloneMs: number): number {
    const ms = this.isContended ? contendedSliceMs : aloneMs;
    return isUrgent ? urgentSlices * ms : ms;
  }
}

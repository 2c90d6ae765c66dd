// Request units a second that a pod can do, learnt from load: what was charged in a second, over the share of that second
// in which the thread was busy. An idle thread says little about that, so nothing is known until the thread was nearly
// always busy for some seconds in a row.

/** From this share of busy time on a second says what the pod can do. */
const saturation = 0.8;
/** Seconds in a row that confirm a first estimate. */
const confirmingSeconds = 3;
/** Share of the newest second. */
const newest = 0.2;
/** Share of the newest second while requests are queued for capacity though the thread is idle. */
const newestIfTooLow = 0.5;

export interface LoadedSecond {
  /** Charged to all tenants. */
  units: number;
  /** Share of the time in which the thread was busy, 0 to 1. */
  utilization: number;
  /** Whether requests are queued for want of capacity. */
  isLimiting: boolean;
}

export class CapacityEstimate {
  #perSecond: number;
  #sum = 0;
  #seconds = 0;

  /** `perSecond` was confirmed by load before; 0 if nothing is known. */
  constructor(perSecond = 0) {
    this.#perSecond = perSecond;
  }

  /** Request units; 0 until load has confirmed an estimate. */
  get perSecond(): number {
    return this.#perSecond;
  }

  observe({ units, utilization, isLimiting }: LoadedSecond): void {
    if (units <= 0 || utilization <= 0) return;
    const sample = units / utilization;
    const isSaturated = utilization >= saturation;
    if (this.#perSecond === 0) this.#confirm(sample, isSaturated);
    else if (isSaturated) this.#perSecond += newest * (sample - this.#perSecond);
    else if (isLimiting && sample > this.#perSecond) {
      this.#perSecond += newestIfTooLow * (sample - this.#perSecond);
    }
  }

  #confirm(sample: number, isSaturated: boolean): void {
    this.#sum = isSaturated ? this.#sum + sample : 0;
    this.#seconds = isSaturated ? this.#seconds + 1 : 0;
    if (this.#seconds === confirmingSeconds) this.#perSecond = this.#sum / confirmingSeconds;
  }
}

// A pod's capacity in request units a second, measured under load: the units charged in a second or
// half of one, over the share of that time in which the thread was busy. An idle thread gives no
// estimate, so the capacity is unknown until the thread was nearly always busy for some samples in
// a row.

/** Share of busy time from which on a sample counts. */
const saturation = 0.8;
/** Samples in a row that confirm a first estimate. */
const confirmingSamples = 3;
/** Share of the newest sample. */
const newest = 0.2;
/** Share of the newest sample while requests are queued for capacity though the thread is idle. */
const newestIfTooLow = 0.5;

interface LoadSample {
  /** Charged to all tenants, a second. */
  units: number;
  /** Share of the sample's time in which the thread was busy, 0 to 1. */
  utilization: number;
  /** Whether requests are queued for want of capacity. */
  isLimiting: boolean;
}

export class CapacityEstimate {
  #perSecond: number;
  #units = 0;
  #busy = 0;
  #samples = 0;

  /** `perSecond` was confirmed by load before; 0 if nothing is known. */
  constructor(perSecond = 0) {
    this.#perSecond = perSecond;
  }

  /** Request units; 0 until load has confirmed an estimate. */
  get perSecond(): number {
    return this.#perSecond;
  }

  observe({ units, utilization, isLimiting }: LoadSample): void {
    const isSaturated = utilization >= saturation;
    if (this.#perSecond === 0) {
      this.#confirm(units, utilization, isSaturated);
      return;
    }
    if (units <= 0 || utilization <= 0) return;
    const sample = units / utilization;
    if (isSaturated) this.#perSecond += newest * (sample - this.#perSecond);
    else if (isLimiting && sample > this.#perSecond) {
      this.#perSecond += newestIfTooLow * (sample - this.#perSecond);
    }
  }

  /** Requests are charged when they end: a sample may have none of a second's units, and the next one all. */
  #confirm(units: number, utilization: number, isSaturated: boolean): void {
    this.#units = isSaturated ? this.#units + units : 0;
    this.#busy = isSaturated ? this.#busy + utilization : 0;
    this.#samples = isSaturated ? this.#samples + 1 : 0;
    if (this.#samples >= confirmingSamples) this.#perSecond = this.#units / this.#busy;
  }
}

// Units to spend, when a request's cost is known only afterwards: it is let in against what it is thought to
// cost, and the difference is settled once it is done. The balance may then be below nothing; whoever owes
// waits until that is refilled.

export interface DebitOptions {
  /** Units refilled in a second. */
  perSecond: number;
  /** Units saved at most. */
  burst: number;
  /** Seconds of refill that can be owed; what is beyond is forgiven. Default 10. */
  maxDebtSeconds?: number;
}

export class Debit {
  private perSecond: number;
  private burst: number;
  private readonly maxDebtSeconds: number;
  private units: number;

  constructor({ perSecond, burst, maxDebtSeconds = 10 }: DebitOptions) {
    this.perSecond = perSecond;
    this.burst = burst;
    this.maxDebtSeconds = maxDebtSeconds;
    this.units = burst;
  }

  get balance(): number {
    return this.units;
  }

  /** Debts stay; of savings what is still allowed does. */
  change(perSecond: number, burst: number): void {
    this.perSecond = perSecond;
    this.burst = burst;
    this.units = Math.min(this.units, burst);
  }

  refill(seconds: number): void {
    this.units = Math.min(this.burst, this.units + this.perSecond * seconds);
  }

  /** Lets a request in against its estimate, if nothing is owed. */
  admit(estimate: number): boolean {
    if (this.units <= 0) return false;
    this.units -= estimate;
    return true;
  }

  /** The request is done. What was taken for it and not needed comes back. */
  settle(estimate: number, actual: number): void {
    const units = this.units + estimate - Math.max(0, actual);
    this.units = Math.min(this.burst, Math.max(units, -this.perSecond * this.maxDebtSeconds));
  }

  /** Seconds until the next request is let in. */
  get secondsToWait(): number {
    if (this.units > 0) return 0;
    return this.perSecond === 0 ? Infinity : -this.units / this.perSecond;
  }
}

// Outcomes of a load's requests since the previous report.

import type { LoadReport } from './load-messages.ts';

const roomAtFirst = 1024;

export class Tally {
  /** Sent and not answered yet. */
  waiting = 0;
  #offered = 0;
  #sent = 0;
  #served = 0;
  #refused = 0;
  #failed = 0;
  #failure: string | undefined;
  #latencies = new Float64Array(roomAtFirst);
  #count = 0;
  #since = performance.now();
  #cpu = process.cpuUsage();

  sent(requests: number): void {
    this.#sent += requests;
    this.#offered += requests;
    this.waiting += requests;
  }

  /** They were due, and could not be sent. */
  dropped(requests: number): void {
    this.#offered += requests;
  }

  /** `dueAt` is undefined where no latency is recorded. */
  served(dueAt: number | undefined): void {
    this.#served++;
    this.#answered(dueAt);
  }

  refused(dueAt: number | undefined): void {
    this.#refused++;
    this.#answered(dueAt);
  }

  failed(dueAt: number | undefined, why: string): void {
    this.#failed++;
    this.#failure ??= why;
    this.#answered(dueAt);
  }

  #answered(dueAt: number | undefined): void {
    this.waiting--;
    if (dueAt === undefined) return;
    if (this.#count === this.#latencies.length) {
      const more = new Float64Array(2 * this.#count);
      more.set(this.#latencies);
      this.#latencies = more;
    }
    this.#latencies[this.#count++] = performance.now() - dueAt;
  }

  take(): LoadReport {
    const now = performance.now();
    const { user, system } = process.cpuUsage(this.#cpu);
    const report: LoadReport = {
      seconds: (now - this.#since) / 1000,
      offered: this.#offered,
      sent: this.#sent,
      served: this.#served,
      refused: this.#refused,
      failed: this.#failed,
      waiting: this.waiting,
      latencies: this.#latencies.slice(0, this.#count),
      cpuMicros: user + system,
      failure: this.#failure,
    };
    this.#offered = this.#sent = this.#served = this.#refused = this.#failed = this.#count = 0;
    this.#failure = undefined;
    this.#since = now;
    this.#cpu = process.cpuUsage();
    return report;
  }

  /** Another run begins. */
  restart(): void {
    this.waiting = 0;
    this.take();
  }
}

// Watches the thread of a plane for steps that take too long: logs them, counts them, and keeps them for `polyrow
// slowlog`.

import { appendFileSync } from 'node:fs';
import { type LongStep, stepCauses, StepWatch } from '../../access/admission/step-watch.ts';
import type { StepEntry, SlowlogQuery } from '../../control/monitor/slowlog.ts';
import type { MetricSample } from '../../control/monitor/metric-sample.ts';
import type { PlaneLog } from './plane-support.ts';
import { adder } from './pod-samples.ts';
import { ThreadInterruptions } from './thread-interruptions.ts';

const heartbeatMs = 10;
const heartbeatsPerSample = 10;
/** Until collections of a step that has ended are known. */
const judgedAfterMs = 20;
/** A flood of long steps must not become a flood of messages. */
const logEveryMs = 1000;
/** A file to which the servers of tests and benches add a line for each long step: see CONTRIBUTING.md. */
const reportsVariable = 'TEST_LONG_STEPS';

export class PlaneSteps {
  readonly watch: StepWatch;
  readonly #plane: string;
  readonly #interruptions = new ThreadInterruptions();
  #timer: NodeJS.Timeout | undefined;
  #isStarted = false;
  readonly #log: PlaneLog;
  #loggedAt = -Infinity;
  #notLogged = 0;
  readonly #reports = process.env[reportsVariable];

  constructor(plane: 'redis' | 'influx', log: PlaneLog) {
    this.#plane = plane;
    this.#log = log;
    this.watch = new StepWatch({
      report: (step) => this.#tell(step),
      interruptions: this.#interruptions,
      awake: () => this.#beat(),
      later: (run) => setTimeout(run, judgedAfterMs).unref(),
      now: () => Date.now(),
    });
  }

  /** Starts watching for stalls: before, there are no clients to delay. */
  start(): void {
    this.#isStarted = true;
    this.#beat();
  }

  /** Until nothing has been touched for a while: a thread without work is not woken up. */
  #beat(): void {
    if (!this.#isStarted || this.#timer !== undefined) return;
    let last = performance.now();
    this.#interruptions.sample(last);
    let beats = 0;
    this.#timer = setInterval(() => {
      const now = performance.now();
      this.watch.heartbeat(last + heartbeatMs, now);
      if (++beats % heartbeatsPerSample === 0) this.#interruptions.sample(now);
      last = now;
      if (this.watch.isAtRest) this.#rest();
    }, heartbeatMs);
    this.#timer.unref();
  }

  /** The newest first. */
  list({ tenant, limit }: SlowlogQuery): StepEntry[] {
    return this.watch.newest(limit, tenant).map((step) => ({
      id: step.id,
      at: step.at,
      durationMicros: Math.round(step.durationMs * 1000),
      collectionMicros: Math.round(step.collectionMs * 1000),
      preemptedMicros: Math.round(step.preemptedMs * 1000),
      cause: step.cause,
      tenant: step.tenant,
      text: step.what,
      bytes: step.bytes,
    }));
  }

  samples(): MetricSample[] {
    const samples: MetricSample[] = [];
    for (const cause of stepCauses) {
      const { count, longestMs } = this.watch.countsOf(cause);
      const add = adder(samples, { plane: this.#plane, cause });
      add('counter', 'long_steps', 'Synchronous steps of more than 25 ms.', count);
      add('gauge', 'longest_step_seconds', 'The longest synchronous step.', longestMs / 1000);
    }
    return samples;
  }

  #rest(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  close(): void {
    this.#isStarted = false;
    this.#rest();
    this.#interruptions.close();
  }

  #tell(step: LongStep): void {
    if (this.#reports !== undefined) {
      appendFileSync(this.#reports, `${JSON.stringify({ plane: this.#plane, ...step })}\n`);
    }
    // The others are the machine's or V8's doing: they are counted and kept.
    if (step.cause !== 'work') return;
    const now = performance.now();
    if (now - this.#loggedAt < logEveryMs) {
      this.#notLogged++;
      return;
    }
    const { what, tenant, bytes, durationMs } = step;
    this.#log('warn', 'a step kept the thread for long', {
      step: what,
      tenant,
      bytes,
      durationMs: Math.round(durationMs),
      ...(this.#notLogged > 0 ? { notLogged: this.#notLogged } : {}),
    });
    this.#loggedAt = now;
    this.#notLogged = 0;
  }
}

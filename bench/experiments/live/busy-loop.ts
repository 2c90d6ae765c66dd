// A worker thread whose event loop does work in slices: each piece hashes for a while, waits as for a disk, and hashes
// on, giving way to others between two slices. Pieces come from the main thread at whatever rate; here they begin at
// once, or when there is a slot for them, the newest epoch first.

import { createHash } from 'node:crypto';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { CpuSlots } from '../baselines/cpu-slots.ts';
import { type Work, WorkQueue } from '../../../storage-node/admission/work-queue.ts';

/** What one run of a loop is told. */
export interface LoopOptions {
  slots: boolean;
  /** Pieces a second; Infinity for 64 at a time, each of which is followed by another. */
  rate: number;
  seconds: number;
}

export interface LoopRun {
  /** Pieces done within their deadline, a second. */
  goodput: number;
  /** Of the event loop, ms. */
  lagP99: number;
  /** Worst lag by tenth of a second, ms. */
  lags: [second: number, lag: number][];
  /** Slots when it ended. */
  slots: number;
}

const slices = 4;
const sliceBytes = 256 * 1024;
/** After the first slice. */
const diskMs = 1;
const deadlineMs = 1000;
const atATime = 64;
/** Between two adjustments of the slots, and two looks at the queue. */
const adjustMs = 2;
const tickMs = 10;
const arrivalsMs = 1;

interface Piece extends Work {
  slicesLeft: number;
}

/** A thread with nothing else to do. */
export class BusyLoop {
  readonly #worker = new Worker(import.meta.filename, { workerData: 'busy loop' });

  run(options: LoopOptions): Promise<LoopRun> {
    return new Promise((resolve, reject) => {
      this.#worker.once('error', reject);
      this.#worker.once('message', (run: LoopRun) => {
        clearInterval(timer);
        this.#worker.removeListener('error', reject);
        resolve(run);
      });
      this.#worker.postMessage(options);
      const begunAt = performance.now();
      let sent = 0;
      const send = (): void => {
        const passed = Math.min(options.seconds * 1000, performance.now() - begunAt);
        const due = Math.floor((passed * options.rate) / 1000);
        if (due > sent) this.#worker.postMessage(due - sent);
        sent = due;
      };
      const timer = options.rate === Infinity ? undefined : setInterval(send, arrivalsMs);
    });
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }
}

const bytes = Buffer.alloc(sliceBytes, 'polyrow');

class Loop {
  readonly #options: LoopOptions;
  readonly #slots: CpuSlots;
  readonly #queue = new WorkQueue<Piece>();
  readonly #startedAt = performance.now();
  readonly #lags: [number, number][] = [];
  readonly #timers: NodeJS.Timeout[] = [];
  #done = 0;
  #isOver = false;

  constructor(options: LoopOptions) {
    this.#options = options;
    this.#slots = new CpuSlots({ enabled: options.slots });
  }

  run(): Promise<LoopRun> {
    const delays = monitorEventLoopDelay({ resolution: 1 });
    delays.enable();
    this.#follow();
    if (this.#options.rate === Infinity) this.arrive(atATime);
    return new Promise((resolve) => {
      setTimeout(() => {
        delays.disable();
        this.#isOver = true;
        for (const timer of this.#timers) clearInterval(timer);
        const seconds = (performance.now() - this.#startedAt) / 1000;
        resolve({
          goodput: this.#done / seconds,
          lagP99: delays.percentile(99) / 1e6,
          lags: this.#lags,
          slots: this.#slots.slots,
        });
      }, this.#options.seconds * 1000);
    });
  }

  /** What a pod does beside its work: timers that find out how late they are. */
  #follow(): void {
    let last = performance.now();
    let worst = 0;
    const adjust = setInterval(() => {
      const now = performance.now();
      const lag = Math.max(0, now - last - adjustMs);
      last = now;
      worst = Math.max(worst, lag);
      this.#slots.adjust(lag);
      this.#begin();
    }, adjustMs);
    const tick = setInterval(() => this.#queue.tick(performance.now()), tickMs);
    const note = setInterval(() => {
      this.#lags.push([(performance.now() - this.#startedAt) / 1000, worst]);
      worst = 0;
    }, 100);
    this.#timers.push(adjust, tick, note);
  }

  arrive(count: number): void {
    const now = performance.now();
    for (let i = 0; i < count; i++) {
      const piece: Piece = {
        priority: 0,
        startedAt: now,
        arrivedAt: now,
        deadline: now + deadlineMs,
        slicesLeft: slices,
      };
      if (this.#options.slots) this.#queue.push(piece);
      else this.#work(piece);
    }
    this.#begin();
  }

  #begin(): void {
    while (this.#queue.length > 0 && this.#slots.take()) {
      const next = this.#queue.pop(performance.now());
      if (next === undefined) {
        this.#slots.free();
        return;
      }
      this.#work(next);
    }
  }

  #work(piece: Piece): void {
    if (this.#isOver) return;
    createHash('sha256').update(bytes).digest();
    piece.slicesLeft--;
    if (piece.slicesLeft > 0) {
      const on = (): void => this.#work(piece);
      if (piece.slicesLeft === slices - 1) setTimeout(on, diskMs);
      else setImmediate(on);
      return;
    }
    if (performance.now() <= piece.deadline) this.#done++;
    if (this.#options.slots) this.#slots.free();
    if (this.#options.rate === Infinity) this.arrive(1);
    this.#begin();
  }
}

if (!isMainThread && workerData === 'busy loop') {
  let loop: Loop | undefined;
  parentPort!.on('message', (message: LoopOptions | number) => {
    if (typeof message === 'number') {
      loop?.arrive(message);
      return;
    }
    loop = new Loop(message);
    void loop.run().then((run) => {
      loop = undefined;
      parentPort!.postMessage(run);
    });
  });
}

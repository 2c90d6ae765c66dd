// A process that generates load, undisturbed by the measured server and other load. Controlled by
// messages of its parent: see `LoadOrder`.

import { setTimeout as sleep } from 'node:timers/promises';
import { HttpSender } from './http-sender.ts';
import type { LoadAnswer, LoadOptions, LoadOrder } from './load-messages.ts';
import { RedisSender } from './redis-sender.ts';
import type { Sender } from './sender.ts';
import { Tally } from './tally.ts';

/** Timers are precise to a millisecond. In precise mode the process sleeps without returning to the event loop. */
const tickMs = 2;
const napMs = 0.05;
/** Time that answers have to come after the last request. */
const lateMs = 3000;

const nap = new Int32Array(new SharedArrayBuffer(4));

class Load {
  readonly #options: LoadOptions;
  readonly #tally = new Tally();
  readonly #sender: Sender;
  #rate = 0;
  #startedAt = 0;
  /** Batches since then. */
  #sent = 0;
  #isRunning = false;

  constructor(options: LoadOptions) {
    this.#options = options;
    const { traffic, isPrecise } = options;
    this.#sender =
      traffic.kind === 'redis'
        ? new RedisSender(traffic, this.#tally, isPrecise)
        : new HttpSender(traffic, this.#tally, isPrecise);
  }

  async obey(order: LoadOrder): Promise<LoadAnswer> {
    if (order.do === 'start') await this.#start(order.rate);
    else if (order.do === 'change') this.#schedule(order.rate);
    else if (order.do === 'stop') await this.#stop();
    return { report: this.#tally.take() };
  }

  async #start(rate: number): Promise<void> {
    await this.#sender.open();
    this.#tally.restart();
    this.#schedule(rate);
    if (rate === Infinity) {
      this.#sender.sendFreely();
      return;
    }
    this.#isRunning = true;
    this.#tick();
  }

  #schedule(rate: number): void {
    this.#rate = rate;
    this.#startedAt = performance.now();
    this.#sent = 0;
  }

  readonly #tick = (): void => {
    if (!this.#isRunning) return;
    this.#sendDue(performance.now());
    if (this.#options.isPrecise) {
      Atomics.wait(nap, 0, 0, napMs);
      setImmediate(this.#tick);
    } else setTimeout(this.#tick, tickMs);
  };

  #sendDue(now: number): void {
    const { batch } = this.#sender;
    const everyMs = (1000 * batch) / this.#rate;
    const due = Math.floor((now - this.#startedAt) / everyMs);
    while (this.#sent < due) {
      if (!this.#sender.send(this.#startedAt + (this.#sent + 1) * everyMs)) {
        if (!this.#options.drops) break;
        this.#tally.dropped((due - this.#sent) * batch);
        this.#sent = due;
        break;
      }
      this.#sent++;
    }
  }

  async #stop(): Promise<void> {
    this.#isRunning = false;
    const end = performance.now() + (this.#options.drops ? 0 : lateMs);
    while (this.#tally.waiting > 0 && performance.now() < end) await sleep(1);
    this.#sender.close();
  }
}

let load: Load | undefined;

async function obey(order: LoadOrder): Promise<LoadAnswer> {
  try {
    if (order.do === 'prepare') load = new Load(order.options);
    return await load!.obey(order);
  } catch (error) {
    return { error: (error as Error).message };
  }
}

process.on('message', (order: LoadOrder) => {
  if (order.do === 'exit') process.exit(0);
  void obey(order).then((answer) => process.send!(answer));
});
// The parent has ended.
process.on('disconnect', () => process.exit(0));

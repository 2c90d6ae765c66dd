// Notices at once that the log has grown, where the deployment has change streams. A notice is only a hint to poll.
// Notices may be missed, so a broken stream is reopened, not resumed.

import { setTimeout as sleep } from 'node:timers/promises';
import type { ChangeStream } from 'mongodb';
import type { Connection } from './connection.ts';
import { lacksStreams } from './failures.ts';

const retryMs = 1000;
/** Time the server is asked to wait for a change. */
const awaitMs = 1000;
/** An empty answer that comes faster than this was not waited for: then it is on us to wait. */
const hastyMs = 100;
const paceMs = 250;

export class LogHints {
  readonly #connection: Connection;
  readonly #onGrowth: () => void;
  readonly #abort = new AbortController();
  readonly #done: Promise<void>;
  #isOpen = false;

  constructor(connection: Connection, onGrowth: () => void) {
    this.#connection = connection;
    this.#onGrowth = onGrowth;
    this.#done = this.#run();
  }

  /** Growth is told as it happens. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  async close(): Promise<void> {
    this.#abort.abort();
    await this.#done;
  }

  async #run(): Promise<void> {
    while (!this.#abort.signal.aborted) {
      // Without a connection there is nothing to watch; the calls of others make one.
      if (this.#connection.isOpen && !(await this.#watch())) return;
      await this.#pause(retryMs);
    }
  }

  /** Until it fails. Whether it is worth another attempt: a deployment does not change its kind. */
  async #watch(): Promise<boolean> {
    const { log } = this.#connection.collections;
    const stream = log.watch([{ $project: { _id: 1 } }], { maxAwaitTimeMS: awaitMs });
    try {
      await this.#read(stream);
      return true;
    } catch (error) {
      return !lacksStreams(error);
    } finally {
      this.#isOpen = false;
      await stream.close().catch(() => {});
    }
  }

  async #read(stream: ChangeStream): Promise<void> {
    while (!this.#abort.signal.aborted) {
      const began = performance.now();
      const event = await stream.tryNext();
      if (event !== null || !this.#isOpen) {
        // Including events from before it was open.
        this.#isOpen = true;
        this.#onGrowth();
      } else if (performance.now() - began < hastyMs) {
        await this.#pause(paceMs);
      }
    }
  }

  async #pause(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#abort.signal }).catch(() => {});
  }
}

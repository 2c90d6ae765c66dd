// Watches for changes by other servers to a shared store. Callers that cache documents are notified to reload, and
// are notified again while the reload fails.

import type { DocumentStore } from './document-store.ts';

interface ForeignChangesOptions {
  store: DocumentStore;
  /** Collections to watch. */
  collections: readonly string[];
  /** Reads the documents and adopts those that differ from the cached ones. Never called concurrently. */
  adopt: () => Promise<void>;
  /** Called once for consecutive failures with the same message. */
  report: (message: string) => void;
  retryMs?: number;
}

export class ForeignChanges {
  readonly #options: ForeignChangesOptions;
  readonly #unwatch: () => void;
  #isDue = true;
  #closed = false;
  #running: Promise<void> | undefined;
  #wake: (() => void) | undefined;

  /** Looks at once, and after each change from then on. */
  constructor(options: ForeignChangesOptions) {
    this.#options = options;
    const { store, collections } = options;
    this.#unwatch = store.watch(
      ({ collection }) => {
        if (collections.includes(collection)) this.#look();
      },
      () => this.#look(),
    );
    this.#look();
  }

  #look(): void {
    this.#isDue = true;
    if (this.#closed) return;
    this.#running ??= this.#run().finally(() => (this.#running = undefined));
  }

  async #run(): Promise<void> {
    const { adopt, report, retryMs = 1000 } = this.#options;
    let failure = '';
    while (this.#isDue && !this.#closed) {
      this.#isDue = false;
      try {
        await adopt();
        failure = '';
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        if (message !== failure) report(message);
        failure = message;
        this.#isDue = true;
        await this.#pause(retryMs);
      }
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#unwatch();
    this.#wake?.();
    await this.#running;
  }
}

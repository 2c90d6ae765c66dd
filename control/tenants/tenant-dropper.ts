// Brings the dropping of tenants to its end: their data first, then their documents. What fails is tried again,
// for as long as the server runs; what is not done then, the next start takes up.

import type { TenantDefinition } from '../../universal-row/tenancy/definitions.ts';

const retryAfterMs = 2000;

export interface TenantDropperOptions {
  find: (name: string) => TenantDefinition | undefined;
  /** Resolves when all planes go by what is known now: before that clients of the tenant may still write. */
  inForce: () => Promise<void>;
  /** Removes some of its documents; true when none is left. */
  removeSome: (name: string) => Promise<boolean>;
  report: (message: string) => void;
}

export class TenantDropper {
  readonly #options: TenantDropperOptions;
  readonly #running = new Map<string, Promise<void>>();
  /** Wakes those who wait to try again. */
  readonly #sleepers = new Set<() => void>();
  #dropData: ((tenant: TenantDefinition) => Promise<void>) | undefined;
  #isStopped = false;

  constructor(options: TenantDropperOptions) {
    this.#options = options;
  }

  /** Before this nothing is dropped: nobody could say what data there is. */
  attach(dropData: (tenant: TenantDefinition) => Promise<void>): void {
    this.#dropData = dropData;
  }

  /** The tenant must be `dropping`. */
  drop(name: string): void {
    if (this.#running.has(name)) return;
    const run = this.#run(name).finally(() => this.#running.delete(name));
    this.#running.set(name, run);
  }

  /** Whether it is gone, at the latest after so many milliseconds. */
  async gone(name: string, withinMs: number): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, withinMs);
    });
    await Promise.race([this.#running.get(name), late]);
    clearTimeout(timer);
    return this.#options.find(name) === undefined;
  }

  stop(): void {
    this.#isStopped = true;
    for (const wake of this.#sleepers) wake();
  }

  async stopped(): Promise<void> {
    await Promise.all(this.#running.values());
  }

  async #run(name: string): Promise<void> {
    const { find, inForce, removeSome, report } = this.#options;
    while (!this.#isStopped && this.#dropData !== undefined) {
      try {
        const tenant = find(name);
        if (tenant?.state !== 'dropping') return;
        await inForce();
        await this.#dropData(tenant);
        while (!this.#isStopped && !(await removeSome(name)));
        return;
      } catch (error) {
        if (this.#isStopped) return;
        const reason = error instanceof Error ? error.message : String(error);
        report(`tenant ${name} is not dropped yet: ${reason}`);
        await this.#sleep();
      }
    }
  }

  async #sleep(): Promise<void> {
    await new Promise<void>((resolve) => {
      const wake = (): void => {
        clearTimeout(timer);
        this.#sleepers.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, retryAfterMs).unref();
      this.#sleepers.add(wake);
    });
  }
}

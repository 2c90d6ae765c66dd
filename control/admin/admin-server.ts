// The server for operators and their programs: health, metrics, tables, configuration.

import { AdminListener } from './admin-listener.ts';
import type { AdminServerOptions } from './admin-options.ts';

export class AdminServer extends AdminListener {
  readonly #options: AdminServerOptions;

  constructor(options: AdminServerOptions) {
    super(options, async () => (await import('./admin-app.ts')).adminApp(options));
    this.#options = options;
  }

  /** Loads the pages, so that the first request need not wait for it. */
  async load(): Promise<void> {
    await Promise.all([this.pages(), this.#options.metrics.load()]);
  }
}

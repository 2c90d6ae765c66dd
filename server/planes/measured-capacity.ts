// Capacity of a plane, measured under load and kept in the data directory.

import { readFileSync } from 'node:fs';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TenantAccount } from '../../request-units/meter.ts';
import { CapacityEstimate } from '../../storage-node/admission/pod/capacity-estimate.ts';
import { ChargedUnits } from '../../storage-node/admission/pod/charged-units.ts';

const everyMs = 1000;
/** While nothing is known: the plane is to know its capacity after less than two seconds of load. */
const firstEveryMs = 500;
/** Changes by less than this share are neither told nor kept. */
const noticeable = 0.05;
const fileName = 'capacity.json';
const keepEveryMs = 60_000;

interface MeasuredCapacityOptions {
  directory: string;
  /** Accounts that were charged lately, up to date. */
  accounts: () => Iterable<TenantAccount>;
  /** Whether requests are queued for want of capacity. */
  isLimiting: () => boolean;
  /** `perSecond` has changed. */
  changed: () => void;
  warn: (message: string, fields: object) => void;
}

export class MeasuredCapacity {
  /** Request units; 0 while load has not confirmed any. */
  perSecond: number;
  readonly #options: MeasuredCapacityOptions;
  readonly #estimate: CapacityEstimate;
  readonly #charged: ChargedUnits;
  #timer: NodeJS.Timeout;
  #observedAt = performance.now();
  #keptAt = -Infinity;
  #before = performance.eventLoopUtilization();

  constructor(options: MeasuredCapacityOptions) {
    this.#options = options;
    this.perSecond = kept(options.directory);
    this.#estimate = new CapacityEstimate(this.perSecond);
    this.#charged = new ChargedUnits(options.accounts);
    this.#timer = this.#next();
  }

  #next(): NodeJS.Timeout {
    const ms = this.#estimate.perSecond === 0 ? firstEveryMs : everyMs;
    return setTimeout(() => this.#observe(), ms).unref();
  }

  #observe(): void {
    this.#timer = this.#next();
    const at = performance.now();
    const seconds = (at - this.#observedAt) / 1000;
    this.#observedAt = at;
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, this.#before);
    this.#before = now;
    const isLimiting = this.#options.isLimiting();
    const units = this.#charged.take() / seconds;
    this.#estimate.observe({ units, utilization, isLimiting });
    const { perSecond } = this.#estimate;
    if (Math.abs(perSecond - this.perSecond) <= noticeable * this.perSecond) return;
    this.perSecond = perSecond;
    this.#options.changed();
    this.#keep();
  }

  #keep(): void {
    const { directory, warn } = this.#options;
    const now = performance.now();
    if (now - this.#keptAt < keepEveryMs) return;
    this.#keptAt = now;
    keep(directory, this.perSecond).catch((error: unknown) =>
      warn('the measured capacity could not be kept', { err: error }),
    );
  }

  close(): void {
    clearTimeout(this.#timer);
  }
}

/** 0 if there is no file, or one that nothing can be read from: it is measured again then. */
function kept(directory: string): number {
  try {
    const { ruPerSecond } = JSON.parse(readFileSync(join(directory, fileName), 'utf8')) as {
      ruPerSecond?: unknown;
    };
    return typeof ruPerSecond === 'number' && ruPerSecond > 0 && Number.isFinite(ruPerSecond)
      ? ruPerSecond
      : 0;
  } catch {
    return 0;
  }
}

/** Not synced: a file that is lost costs some seconds of measuring. */
async function keep(directory: string, perSecond: number): Promise<void> {
  await mkdir(directory, { recursive: true });
  const path = join(directory, fileName);
  await writeFile(`${path}.new`, `${JSON.stringify({ ruPerSecond: Math.round(perSecond) })}\n`);
  await rename(`${path}.new`, path);
}

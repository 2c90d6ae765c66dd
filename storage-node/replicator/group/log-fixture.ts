// For tests: a log on a faulty disk, with verbs short enough that a test reads as a story.

import type { Rng } from '../../../universal-row/environment.ts';
import { systemClock } from '../../../universal-row/environment.ts';
import { FaultyDisk } from '../../disk/faulty-disk.ts';
import { LocalGroup } from './local-group.ts';
import type { LocalGroupOptions } from './local-group.ts';

export const logDirectory = '/log';

/** A small generator (mulberry32): the same seed, the same numbers. */
export function seededRng(seed: number): Rng {
  let state = seed >>> 0;
  return {
    next() {
      state = (state + 0x6d2b79f5) >>> 0;
      let t = Math.imul(state ^ (state >>> 15), state | 1);
      t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
      return ((t ^ (t >>> 14)) >>> 0) / 0x1_0000_0000;
    },
  };
}

export class LogFixture {
  disk: FaultyDisk;
  log!: LocalGroup;
  /** Payloads by index, as replayed by the last opening. */
  replayed = new Map<number, string>();
  fatal: Error | undefined;
  readonly options: Partial<LocalGroupOptions>;

  constructor(
    options: Partial<LocalGroupOptions> & { seed?: number; capacityBytes?: number } = {},
  ) {
    const { seed, capacityBytes, ...rest } = options;
    this.disk = new FaultyDisk({
      rng: seededRng(seed ?? 1),
      ...(capacityBytes === undefined ? {} : { capacityBytes }),
    });
    this.options = rest;
  }

  async open(options: Partial<LocalGroupOptions> = {}): Promise<LocalGroup> {
    this.replayed = new Map();
    this.fatal = undefined;
    const { disk } = this;
    this.log = await LocalGroup.open({
      disk: this.disk,
      directory: logDirectory,
      fsync: 'always',
      segmentBytes: 4096,
      ballastBytes: 0,
      clock: systemClock,
      rng: this.disk.rng,
      ids: { cluster: 7, pod: 3 },
      group: 1,
      appliedIndex: 0,
      apply: (buf, start, end, index) => {
        if (this.replayed.has(index)) throw new Error(`entry ${index} applied twice`);
        this.replayed.set(index, buf.toString('latin1', start, end));
      },
      fatal: (error) => {
        // Not of an earlier life, whose disk is gone.
        if (disk === this.disk) this.fatal = error;
      },
      ...this.options,
      ...options,
    });
    return this.log;
  }

  /** One entry of an open tick; its index. */
  entry(payload: string): number {
    const { log } = this;
    log.begin();
    const w = log.writer;
    w.reserve(payload.length);
    w.buf.write(payload, w.pos, 'latin1');
    w.pos += payload.length;
    return log.end();
  }

  /** A tick of these entries; the position to wait for. */
  tick(...payloads: string[]): number {
    for (const payload of payloads) this.entry(payload);
    return this.log.endTick();
  }

  /** A tick of these entries, until it is safe. */
  async write(...payloads: string[]): Promise<void> {
    const position = this.tick(...payloads);
    if (position >= 0) await this.safe(position);
  }

  safe(position: number): Promise<void> {
    return new Promise((resolve) => this.log.whenSettled(position, () => resolve()));
  }

  crash(): void {
    this.disk = this.disk.crash();
  }

  kill(): void {
    this.disk = this.disk.evict().kill();
  }

  segments(): string[] {
    return this.disk.list(logDirectory).filter((name) => name.startsWith('seg-'));
  }

  path(name: string): string {
    return `${logDirectory}/${name}`;
  }
}

// Log entries that incremental backups still need. A pin keeps the log from the point of a chain's
// last backup on, for the next one. Pins are stored in a small file across restarts; a pin is
// released when the log has grown too much since, and the next backup is then a full one.
//
//   backup-pins = JSON, a line, then its SHA-256, a line

import { createHash } from 'node:crypto';
import type { Disk } from '../../universal-row/environment.ts';
import type { PartitionLog } from '../replicator/partition-log.ts';
import type { LogPoint } from './manifest-content.ts';

interface LogPin {
  /** Id of the full backup of the chain, and of the last one in it. */
  readonly chain: string;
  readonly backup: string;
  readonly point: LogPoint;
  /** Where the log was then. */
  readonly lsn: number;
}

const fileName = 'backup-pins';
/** The oldest goes when there would be more: abandoned chains must not add up. */
const maxPins = 16;

interface LogPinsOptions {
  disk: Disk;
  /** The pod's. */
  directory: string;
  log: PartitionLog;
  /** A pin is released when the log has grown by more since. */
  maxBytes: number;
  /** False where a backup only compares indexes, as for time series: no log is held then. */
  holdsLog: boolean;
  report: (level: 'info' | 'warn', message: string, fields?: object) => void;
}

/** Options of a replica in a cluster. */
export type ReplicaPins = Pick<LogPinsOptions, 'disk' | 'directory' | 'maxBytes'>;

export class LogPins {
  readonly #options: LogPinsOptions;
  /** In the order they were set. */
  readonly #pins = new Map<string, LogPin>();
  /** Points of backups under way. */
  readonly #held = new Set<{ readonly index: number }>();

  /** Drops pins that the log no longer supports: it was begun anew, or lost its end. */
  static open(options: LogPinsOptions): LogPins {
    const pins = new LogPins(options);
    const { volume, lastIndex, firstIndex } = options.log.status();
    const found = pins.#read();
    for (const pin of found) {
      const { point } = pin;
      const isThere = !options.holdsLog || point.index + 1 >= firstIndex;
      // With several copies, no replica loses committed entries, and this one may have yet to apply
      // them again.
      const isHeld = options.log.mayLose || point.index <= lastIndex;
      if (point.volume === volume && isHeld && isThere) {
        pins.#pins.set(pin.chain, pin);
      }
    }
    // Written before the log grows again: lost entries must not be confused with the ones in their
    // place.
    if (pins.#pins.size < found.length) pins.#write();
    pins.#apply();
    return pins;
  }

  private constructor(options: LogPinsOptions) {
    this.#options = options;
  }

  /** The point to continue from, if the last backup of the chain was this one; or why it cannot be. */
  find(chain: string, backup: string): LogPoint | string {
    this.trim();
    const pin = this.#pins.get(chain);
    const { holdsLog, log } = this.#options;
    // Where a snapshot has taken the place of the log.
    const isGone = holdsLog && pin !== undefined && pin.point.index + 1 < log.status().firstIndex;
    if (pin === undefined || isGone) return 'the log since the last backup is kept no more';
    if (pin.backup !== backup) return `the last backup that the server knows of is ${pin.backup}`;
    return pin.point;
  }

  /** From now on the chain continues from here; another one, in place of which this is, does not. */
  set(pin: LogPin, instead?: string): void {
    this.#pins.delete(pin.chain);
    if (instead !== undefined) this.#pins.delete(instead);
    this.#pins.set(pin.chain, pin);
    for (const oldest of this.#pins.keys()) {
      if (this.#pins.size <= maxPins) break;
      this.#pins.delete(oldest);
    }
    this.#write();
    this.#apply();
  }

  /** No chain can be continued, because the log since then lacks some changes. */
  clear(): void {
    if (this.#pins.size === 0) return;
    const pins = [...this.#pins];
    this.#pins.clear();
    try {
      this.#write();
    } catch (error) {
      // They are still on the disk, and go when the caller tries again.
      for (const [chain, pin] of pins) this.#pins.set(chain, pin);
      throw error;
    }
    this.#apply();
  }

  /** Holds entries after an index until the function returned is called. */
  hold(index: number): () => void {
    const token = { index };
    this.#held.add(token);
    this.#apply();
    return () => {
      this.#held.delete(token);
      this.#apply();
    };
  }

  /** Drops pins that keep too much of the log. */
  trim(): void {
    const { log, maxBytes, holdsLog, report } = this.#options;
    if (this.#pins.size === 0 || !holdsLog) return;
    const { appendedLsn } = log.status();
    const stale = [...this.#pins.values()].filter((pin) => appendedLsn - pin.lsn > maxBytes);
    if (stale.length === 0) return;
    for (const { chain, backup } of stale) {
      this.#pins.delete(chain);
      report(
        'info',
        'the log since a backup is released: the next backup of its chain is a full one',
        {
          backup,
        },
      );
    }
    this.#write();
    this.#apply();
  }

  #apply(): void {
    if (!this.#options.holdsLog) return;
    const held = [...this.#held].map(({ index }) => index);
    const pinned = [...this.#pins.values()].map(({ point }) => point.index);
    this.#options.log.keepAfter = Math.min(Infinity, ...pinned, ...held);
  }

  get #path(): string {
    return `${this.#options.directory}/${fileName}`;
  }

  /** A file that cannot be read costs a full backup, nothing else. */
  #read(): LogPin[] {
    const { disk } = this.#options;
    if (!disk.exists(this.#path)) return [];
    const file = disk.open(this.#path, 'read');
    try {
      const bytes = Buffer.alloc(file.size());
      file.read(bytes, 0, bytes.length, 0);
      const [json = '', sum = ''] = bytes.toString('utf8').split('\n');
      return sum === digest(json) ? (JSON.parse(json) as LogPin[]) : [];
    } finally {
      file.close();
    }
  }

  #write(): void {
    const { disk, directory } = this.#options;
    const json = JSON.stringify([...this.#pins.values()]);
    const bytes = Buffer.from(`${json}\n${digest(json)}\n`);
    const file = disk.open(`${this.#path}.new`, 'create');
    try {
      file.write(bytes, 0, bytes.length, 0);
      file.syncNow();
    } finally {
      file.close();
    }
    disk.rename(`${this.#path}.new`, this.#path);
    disk.syncDirectory(directory);
  }
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

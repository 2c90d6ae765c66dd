// File in which a node with a relaxed fsync policy records two things: the boot of its machine in which it has
// acknowledged writes that may not be on disk, and the groups that are fenced since an end without a sync.
//
// The end of the process alone loses no written data, because the operating system has it. A start in another boot of
// the machine means that this data may be lost; so does a failure of the log (see universal-row/written-again.ts). Such a
// failure is recorded in the file as an unknown boot, or by the file's name where the disk takes no new file.

import type { Disk } from '../../../universal-row/environment.ts';
import { giveUpBallast } from '../wal/ballast.ts';
import { isDiskFull } from '../wal/log-errors.ts';

/** The name of no boot. */
const unknownBoot = 'unknown';

interface Kept {
  /** Boot of the machine, '' when all that was acknowledged is on disk. */
  boot: string;
  /** Groups, and the terms with which their fences end. */
  fences: [group: number, term: number][];
}

export class FenceRecord {
  /** Whether acknowledged writes may be missing from this log since its last life. */
  readonly wasUnclean: boolean;
  /** Gives up what is reserved on the disk; false when nothing is. */
  makeRoom: () => boolean;
  readonly #disk: Disk;
  readonly #directory: string;
  readonly #boot: string;
  readonly #fences: Map<number, number>;
  #keptBoot: string;
  #exists: boolean;

  /** `boot` differs after each start of the machine; '' where that is unknown. */
  constructor(disk: Disk, directory: string, boot: string) {
    this.#disk = disk;
    this.#directory = directory;
    this.#boot = boot;
    this.makeRoom = () => giveUpBallast(disk, directory);
    this.#exists = disk.exists(this.#path);
    const kept = this.#kept();
    this.#keptBoot = kept.boot;
    this.#fences = new Map(kept.fences);
    this.wasUnclean = kept.boot !== '' && kept.boot !== boot;
  }

  /** The term with which the fence of a group ends, 0 where there is none. */
  fenceOf(group: number): number {
    return this.#fences.get(group) ?? 0;
  }

  /** Fences groups, durably, and takes the loss of the last life for noted. */
  fence(fences: ReadonlyMap<number, number>): void {
    for (const [group, term] of fences) this.#fences.set(group, term);
    this.#keptBoot = '';
    this.#save();
  }

  /** From now on writes are acknowledged that may not be on disk. */
  relax(): void {
    // Where the boot is unknown any end but an orderly one counts as that of the machine.
    this.#keep(this.#boot === '' ? unknownBoot : this.#boot);
  }

  /**
   * The log has failed: the operating system may have given up writes that it had accepted, and may forget them before the
   * machine ends. Where writes were acknowledged ahead of the disk, the next start is unclean in any boot.
   */
  logFailed(): void {
    if (this.#keptBoot === '') return;
    try {
      this.#keep(unknownBoot);
    } catch {
      // A rename succeeds on most disks that are full or fail.
      this.#disk.rename(this.#path, this.#uncleanPath);
      this.#exists = false;
      this.#keptBoot = unknownBoot;
    }
  }

  /** The replica has all there is again, on disk. */
  lifted(group: number): void {
    if (!this.#fences.delete(group) || this.#fences.size > 0) return;
    this.#save();
  }

  /** All that was acknowledged is on disk, and no more is acknowledged before that. */
  settled(): void {
    if (this.#keptBoot === '') return;
    this.#keptBoot = '';
    this.#save();
  }

  #keep(boot: string): void {
    if (this.#keptBoot === boot) return;
    this.#save(boot);
    this.#keptBoot = boot;
  }

  get #path(): string {
    return `${this.#directory}/fences`;
  }

  /** Has the place of the file where not even the boot could be changed in it. */
  get #uncleanPath(): string {
    return `${this.#path}.unclean`;
  }

  #kept(): Kept {
    const isUnclean = this.#disk.exists(this.#uncleanPath);
    if (isUnclean) return { ...this.#load(this.#uncleanPath), boot: unknownBoot };
    return this.#exists ? this.#load(this.#path) : { boot: '', fences: [] };
  }

  #load(path: string): Kept {
    const file = this.#disk.open(path, 'read');
    const bytes = Buffer.alloc(file.size());
    file.read(bytes, 0, bytes.length, 0);
    file.close();
    return JSON.parse(bytes.toString()) as Kept;
  }

  #save(boot = this.#keptBoot): void {
    try {
      this.#replace(boot);
    } catch (error) {
      if (!isDiskFull(error) || !this.makeRoom()) throw error;
      this.#disk.syncDirectory(this.#directory);
      this.#replace(boot);
    }
  }

  #replace(boot: string): void {
    const disk = this.#disk;
    if (boot === '' && this.#fences.size === 0) {
      if (this.#exists) disk.remove(this.#path);
      this.#exists = false;
    } else {
      const kept: Kept = { boot, fences: [...this.#fences] };
      const bytes = Buffer.from(JSON.stringify(kept));
      const file = disk.open(`${this.#path}.new`, 'create');
      file.write(bytes, 0, bytes.length, 0);
      file.syncNow();
      file.close();
      disk.rename(`${this.#path}.new`, this.#path);
      this.#exists = true;
    }
    if (disk.exists(this.#uncleanPath)) disk.remove(this.#uncleanPath);
    disk.syncDirectory(this.#directory);
  }
}

// A replica's promise while its group keeps leases: for an election time-out after each heartbeat
// of a leader it votes for no other replica and does not campaign, regardless of the state of links. The
// promise outlives the process: a file records that one may have been made, and after a start the
// replica grants no vote, its own included, until it has expired.
//
// Leases can be switched on and off at run time. A leader uses its lease only while all voters
// report, in their last answers, that they keep leases; each reports so from the tick after the
// switch on, and keeps its earlier promises after the switch off.

import { dirname } from 'node:path';
import type { Disk } from '../../../universal-row/environment.ts';

interface LeasePromiseParts {
  disk: Disk;
  /** Path of the file that records that a promise may have been made. */
  path: string;
  /** How long a promise lasts. */
  ticks: number;
  /** Ticks of the pod so far. */
  now: () => number;
}

export function leaseMark(directory: string, group: number): string {
  return `${directory}/leases-${group}`;
}

export class LeasePromise {
  readonly #p: LeasePromiseParts;
  /** Ticks of the pod from which and until which it is said that leases are kept. */
  #from = Infinity;
  /** The tick until which its promise binds it. */
  #boundTo = -Infinity;
  #grantsFrom = -Infinity;

  constructor(parts: LeasePromiseParts) {
    this.#p = parts;
    if (parts.disk.exists(parts.path)) this.#grantsFrom = parts.now() + parts.ticks + 2;
  }

  set(isOn: boolean): void {
    if (isOn === (this.#from !== Infinity)) return;
    const { disk, path, ticks, now } = this.#p;
    if (isOn) {
      if (!disk.exists(path)) disk.open(path, 'create').close();
      // An earlier attempt, or an earlier process, may have made the file without this sync.
      disk.syncDirectory(dirname(path));
      this.#from = now() + 1;
    } else {
      this.#from = Infinity;
      this.#boundTo = now() + ticks + 2;
    }
  }

  /** Leaders are told that it keeps leases. */
  get isKept(): boolean {
    return this.#p.now() >= this.#from;
  }

  /** True while the replica may not campaign before its time-out. */
  get isBound(): boolean {
    return this.#from !== Infinity || this.#p.now() <= this.#boundTo || !this.mayGrant;
  }

  /** Whether the replica may vote. The engine enforces promises made since the start. */
  get mayGrant(): boolean {
    return this.#p.now() >= this.#grantsFrom;
  }
}

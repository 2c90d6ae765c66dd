// Rows of a group observed by this process. They are observed at the leader; after a change of
// leader they are observed at the new one, and each counts as changed, as changes in between may
// have been missed.

import type { LocalPod } from '../../../contracts/local-pod.ts';
import type { RowObserver, TransactionWatch } from '../../../universal-row/executor.ts';
import type { RemoteExecutor } from './remote-executor.ts';

/** Where commands of a group run. */
export type GroupPlace = LocalPod | RemoteExecutor;

type Observe = (table: number, key: Buffer, observer: RowObserver) => void;

interface ObservedRow {
  readonly table: number;
  readonly key: Buffer;
  /** Whether the start of observation is not confirmed yet. A remote replica confirms it by reporting a change. */
  isBeginning: boolean;
}

/** All rows of one observer. This object is registered in place of the observer where the rows are observed. */
class GroupObserver implements TransactionWatch {
  readonly observer: RowObserver;
  readonly rows = new Map<string, ObservedRow>();
  /** A change may have been missed. */
  hasMissed = false;
  /** Where its rows are observed; undefined while no place is known. */
  place: GroupPlace | undefined;
  /** `connects` of the link to that place when its first row was observed. */
  connects = 0;

  constructor(observer: RowObserver) {
    this.observer = observer;
  }

  get dirty(): boolean {
    return (this.observer as TransactionWatch).dirty;
  }

  set dirty(isDirty: boolean) {
    (this.observer as TransactionWatch).dirty = isDirty;
  }

  /**
   * Watched rows are observed from the start of the watch; other observers may have missed a change
   * until then.
   */
  rowChanged(table: number, key: Buffer): void {
    const row = 'dirty' in this.observer ? this.rows.get(idOf(table, key)) : undefined;
    if (row?.isBeginning === true) row.isBeginning = false;
    else this.observer.rowChanged(table, key);
  }
}

function isElsewhere(place: GroupPlace | undefined): boolean {
  return place !== undefined && 'link' in place;
}

function connectsOf(place: GroupPlace | undefined): number {
  return place !== undefined && 'link' in place ? place.link.connects : 0;
}

function idOf(table: number, key: Buffer): string {
  return `${table} ${key.toString('latin1')}`;
}

function tellAll(own: GroupObserver): void {
  for (const { table, key } of [...own.rows.values()]) own.rowChanged(table, key);
}

export class GroupObservers {
  readonly #observers = new Map<RowObserver, GroupObserver>();
  #place: GroupPlace | undefined;

  get size(): number {
    return this.#observers.size;
  }

  observe(table: number, key: Buffer, observer: RowObserver): void {
    let own = this.#observers.get(observer);
    if (own === undefined) {
      own = new GroupObserver(observer);
      own.place = this.#place;
      own.connects = connectsOf(this.#place);
      this.#observers.set(observer, own);
    }
    own.rows.set(idOf(table, key), { table, key, isBeginning: isElsewhere(own.place) });
    own.place?.observe(table, key, own);
  }

  unobserve(table: number, key: Buffer, observer: RowObserver): void {
    const own = this.#observers.get(observer);
    if (own?.rows.delete(idOf(table, key)) !== true) return;
    own.place?.unobserve(table, key, own);
    if (own.rows.size === 0) this.#observers.delete(observer);
  }

  has(observer: RowObserver): boolean {
    return this.#observers.has(observer);
  }

  /**
   * The rows of the table have moved to other groups. A change of each may have been missed, so transactions that watch
   * them are invalid. All other observers continue there.
   */
  moveAway(from: number, observe: Observe): void {
    for (const own of [...this.#observers.values()]) {
      for (const row of [...own.rows.values()]) {
        const { table, key } = row;
        if (table !== from) continue;
        this.unobserve(table, key, own.observer);
        if (!('dirty' in own.observer)) observe(table, key, own.observer);
        own.observer.rowChanged(table, key);
      }
    }
  }

  /**
   * Sets where commands run; undefined while that is unknown. If the place is the same as before, no change was missed, but
   * commands that wait for a key may have been tried meanwhile, and must be tried again.
   */
  moveTo(place: GroupPlace | undefined): void {
    if (place === this.#place) return;
    this.#place = place;
    // Without a known leader, the last one is as good as any: it reports the changes it sees.
    if (place === undefined) return;
    for (const own of [...this.#observers.values()]) {
      if (own.place !== place || own.connects !== connectsOf(place)) this.#move(own, place);
      else if (!('dirty' in own.observer)) tellAll(own);
    }
  }

  #move(own: GroupObserver, place: GroupPlace): void {
    for (const row of own.rows.values()) {
      const { table, key } = row;
      own.place?.unobserve(table, key, own);
      row.isBeginning = isElsewhere(place);
      place.observe(table, key, own);
    }
    own.place = place;
    own.connects = connectsOf(place);
    own.hasMissed = true;
    tellAll(own);
  }

  /** Called when the pod of this process was replaced or closed. */
  forgetPlace(place: GroupPlace): void {
    if (this.#place === place) this.#place = undefined;
    for (const own of this.#observers.values()) if (own.place === place) own.place = undefined;
  }

  /**
   * Watch condition for a transaction that is to run there; `missed` if a change of a watched row
   * may have been missed, so that it must not run.
   */
  watchAt(place: GroupPlace, watch: TransactionWatch): TransactionWatch | 'missed' {
    const own = this.#observers.get(watch);
    // The transaction watches no row of this group.
    if (own === undefined) return watch;
    const isKept = own.place === place && own.connects === connectsOf(place) && !own.hasMissed;
    return isKept ? own : 'missed';
  }
}

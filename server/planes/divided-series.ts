// A tenant's time series in several groups, as the gateway of this node asks them.

import type { DividedSeries as Divided } from '../../access/influx/forwarding/forwarder.ts';
import { catchUp } from '../../access/gateway/pods/session-reads.ts';
import type { ReplicaLog } from '../../contracts/local-pod.ts';
import type { ReadBounds } from '../../universal-row/command.ts';
import type { DividedStore } from './divided-store.ts';

interface DividedSeriesOptions {
  /** By partition. */
  readonly groups: readonly number[];
  readonly store: DividedStore;
  /** The log of a group with a replica here. */
  readonly logOf: (group: number) => ReplicaLog | undefined;
}

export class DividedSeries implements Divided {
  readonly groups: readonly number[];
  readonly store: DividedStore;
  readonly #logOf: (group: number) => ReplicaLog | undefined;

  constructor({ groups, store, logOf }: DividedSeriesOptions) {
    this.groups = groups;
    this.store = store;
    this.#logOf = logOf;
  }

  refresh(): Promise<() => void> {
    return this.store.partitions[0]!.refresh();
  }

  /** Groups without a replica here are read where they are led; the first one has the databases. */
  async mayBeLate({ session }: ReadBounds): Promise<boolean> {
    if (this.#logOf(this.groups[0]!) === undefined) return false;
    if (session === undefined) return true;
    const logs = this.groups.map((group) => ({ group, log: this.#logOf(group) }));
    const here = logs.filter(({ log }) => log !== undefined);
    const asked = await Promise.all(
      here.map(async ({ group, log }) => await catchUp(session, group, log)),
    );
    return asked.every((isThere) => isThere);
  }
}

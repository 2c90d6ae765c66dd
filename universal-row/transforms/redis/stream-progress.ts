// Progress of a consumer group: its count of entries read, and its lag, where deleted entries
// permit either to be known.

import type { Row, Rows } from '../../rows.ts';
import { StreamId } from './stream-id.ts';
import { edgeId, type StreamGroup, type StreamState } from './stream-layout.ts';

/** Looks at a stream as it is; used again once the stream has other entries. */
export class StreamProgress {
  #state: StreamState | undefined;
  /** 0-0 when the stream has no entries, or when nothing depends on it. */
  readonly #first = new StreamId();

  begin(rows: Rows, row: Row, state: StreamState, of?: StreamGroup): void {
    this.#state = state;
    this.#first.setZero();
    if (of !== undefined && of.entriesRead !== -1 && state.maxDeleted.isZero) return;
    if (state.length > 0) edgeId(rows, row, false, this.#first);
  }

  /** Whether an entry from this id on may have been deleted. */
  #hasDeletedFrom(id: StreamId): boolean {
    const { length, maxDeleted } = this.#state!;
    if (length === 0 || maxDeleted.isZero) return false;
    return this.#first.compare(maxDeleted) <= 0 && id.compare(maxDeleted) <= 0;
  }

  /** How many entries were ever added up to this one, itself included; -1 when that is not known. */
  addedUpTo(id: StreamId): number {
    const { entriesAdded, length, last, maxDeleted } = this.#state!;
    if (entriesAdded === 0) return 0;
    const order = id.compare(last);
    if (length === 0 && order <= 0) return entriesAdded;
    if (order === 0) return entriesAdded;
    if (order > 0) return -1;
    if (maxDeleted.isZero || maxDeleted.compare(this.#first) < 0) {
      const toFirst = id.compare(this.#first);
      if (toFirst < 0) return entriesAdded - length;
      if (toFirst === 0) return entriesAdded - length + 1;
    }
    return -1;
  }

  /** The group is about to be at this entry, which is behind the one it was at. */
  advance(group: StreamGroup, id: StreamId): void {
    if (group.entriesRead !== -1 && !this.#hasDeletedFrom(id)) group.entriesRead++;
    else if (this.#state!.entriesAdded > 0) group.entriesRead = this.addedUpTo(id);
    group.last.set(id);
  }

  /** Entries yet to be delivered; undefined when that is not known. */
  lag(group: StreamGroup): number | undefined {
    const { entriesAdded } = this.#state!;
    if (entriesAdded === 0) return 0;
    if (group.entriesRead !== -1 && !this.#hasDeletedFrom(group.last)) {
      return entriesAdded - group.entriesRead;
    }
    const read = this.addedUpTo(group.last);
    return read === -1 ? undefined : entriesAdded - read;
  }
}

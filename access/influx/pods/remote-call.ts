// One request to pods of time series at another node, and its answer.

import {
  DeadlineError,
  OutcomeUnknownError,
  UnavailableError,
} from '../../../contracts/series-store.ts';
import { Deferred } from '../../../universal-row/deferred.ts';
import type { WireReader } from '../../../universal-row/protocol/wire.ts';
import type { SeriesLink, StreamUser } from './series-link.ts';

interface RemoteCallOptions<T> {
  link: SeriesLink;
  /** The request changes data: without an answer its outcome is unknown. */
  changes: boolean;
  /** Reads the answer behind its ending. `applied`: the log index that it may reflect. */
  done: (reader: WireReader, applied: number) => T;
  /** Reads one part of the answer. */
  part?: ((reader: WireReader) => void) | undefined;
  /** Receives the log index that the answer may reflect. */
  saw: (applied: number) => void;
}

export class RemoteCall<T> implements StreamUser {
  readonly #options: RemoteCallOptions<T>;
  readonly #settle = new Deferred<T>();
  #stream = 0;
  #timer: NodeJS.Timeout | undefined;
  #isOver = false;

  constructor(options: RemoteCallOptions<T>) {
    this.#options = options;
    // It may fail before anyone waits for it.
    this.#settle.promise.catch(() => undefined);
  }

  /** Rejects with `UnreachableError` where it was not sent. */
  get answer(): Promise<T> {
    return this.#settle.promise;
  }

  begin(payload: Buffer, timeoutMs: number): void {
    const { link, changes } = this.#options;
    try {
      this.#stream = link.request(payload, this);
    } catch (error) {
      this.#reject(error as Error);
      return;
    }
    if (timeoutMs === 0) return;
    this.#timer = setTimeout(() => {
      link.cancel(this.#stream);
      this.#reject(changes ? new OutcomeUnknownError() : new DeadlineError());
    }, timeoutMs);
  }

  part(reader: WireReader): void {
    this.#options.part?.(reader);
  }

  done(reader: WireReader, applied: number): void {
    const value = this.#options.done(reader, applied);
    reader.done();
    this.#options.saw(applied);
    this.#over();
    this.#settle.resolve(value);
  }

  refused(error: Error): void {
    this.#reject(error);
  }

  failed(): void {
    this.#reject(
      this.#options.changes
        ? new OutcomeUnknownError()
        : new UnavailableError('the link to the node that has this database ended'),
    );
  }

  #reject(error: Error): void {
    this.#over();
    this.#settle.reject(error);
  }

  #over(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
  }

  /** The caller no longer waits for the answer. */
  abandon(): void {
    if (this.#isOver) return;
    this.#over();
    this.#options.link.cancel(this.#stream);
  }
}

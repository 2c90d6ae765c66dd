// A sequence of requests to pods in another process. Answers arrive in the order in which the requests were sent.

import type { Session } from '../../../universal-row/protocol/row-messages.ts';
import type { WireReader } from '../../../universal-row/protocol/wire.ts';
import type { RowWork } from '../../../universal-row/row-work.ts';

/** The sender of a request. */
export interface LaneUser {
  /** Called before `values`: the command found nothing, and its argument `word` is to be replaced by `by` for the retry. */
  readonly work: RowWork | undefined;
  /** Reads the values of this answer, and nothing more, from the reader. */
  replace?(word: number, by: Buffer): void;
  /** A part of a long answer: whole values. */
  part(values: Buffer): void;
  /** The answer: takes its values, and nothing more, from the reader. */
  values(flags: number, reader: WireReader): void;
  /** After `values`, or an exception in it: the answer is invalid, and its copied values are removed. `failed` follows. */
  takeBack?(): void;
  /** After `values`: `work` is counted. */
  done(): void;
  /** No further answer follows for now: work counted for several answers together is charged. */
  rest?(): void;
  /** Called in place of an answer: the request was refused, and nothing was done. */
  refused(kind: number, retryMs: number, text: string): void;
  /** In place of an answer: the link ended. */
  failed(): void;
}

/** Slots of the array of users that are kept when all requests are answered. */
const mostPlaces = 1024;

/** Requests waiting for answers, the first one first. */
class LaneUsers {
  /** Users from `#head` to `#tail`. The array keeps its length, so that a pipeline does not grow it again. */
  #users: (LaneUser | undefined)[] = [];
  #head = 0;
  #tail = 0;

  get first(): LaneUser | undefined {
    return this.#users[this.#head];
  }

  push(user: LaneUser): void {
    this.#users[this.#tail++] = user;
  }

  take(): LaneUser | undefined {
    const user = this.#users[this.#head];
    if (user === undefined) return undefined;
    this.#users[this.#head++] = undefined;
    if (this.#head === this.#tail) {
      this.#head = this.#tail = 0;
      if (this.#users.length > mostPlaces) this.#users = [];
    }
    return user;
  }
}

export class RequestLane {
  readonly id: number;
  readonly users = new LaneUsers();
  /** Session of the requests as last sent to the other end; undefined before the first request. */
  session: Session | undefined;

  constructor(id: number) {
    this.id = id;
  }

  /** The link ended. */
  failed(): void {
    this.session = undefined;
    for (let user = this.users.take(); user !== undefined; user = this.users.take()) user.failed();
  }
}

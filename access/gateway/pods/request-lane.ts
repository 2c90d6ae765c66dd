// Requests to pods in another process that are answered in the order in which they were sent.

import type { Session } from '../../../universal-row/protocol/row-messages.ts';
import type { WireReader } from '../../../universal-row/protocol/wire.ts';
import type { RowWork } from '../../../universal-row/row-work.ts';

/** The sender of a request. */
export interface LaneUser {
  /** Where the work of the request is added up. */
  readonly work: RowWork | undefined;
  /** Before `values`: the command, which has found nothing, is to be tried again with another word. */
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
  /** In place of an answer: nothing was done. */
  refused(kind: number, retryMs: number, text: string): void;
  /** In place of an answer: the link ended. */
  failed(): void;
}

/** Places of users that are kept when all are answered. */
const mostPlaces = 1024;

/** Requests waiting for answers, the first one first. */
class LaneUsers {
  /** Those from `#head` to `#tail`; its length stays, so that it is not grown anew by each pipeline. */
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
  /** Session of its requests at the other end; undefined before the first. */
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

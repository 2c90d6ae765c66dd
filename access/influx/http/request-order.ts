// The order in which queued requests of many connections begin. Connections that were served before and new ones are
// scheduled 3:1, so thousands of new connections do not delay the existing ones. Within each kind, the newest and the oldest
// connection alternate: a flood does not delay later requests for its whole length, and does not starve earlier ones.
// Requests of one connection keep their order.

import type { WaitingWork } from '../../gateway/round-queue.ts';

interface WaitingRequest {
  /** Identity of its connection. */
  readonly connection: object;
  /** The connection had a request before. */
  readonly isKnown: boolean;
  begin(): void;
}

/** One request in so many is taken from a new connection, if one waits. */
const newEvery = 4;

export class RequestOrder implements WaitingWork<WaitingRequest> {
  size = 0;
  readonly #known = new BothEnds();
  readonly #new = new BothEnds();
  /** Requests of each waiting connection. */
  readonly #requests = new Map<object, WaitingRequest[]>();
  #turn = 0;

  add(request: WaitingRequest): void {
    this.size++;
    const { connection, isKnown } = request;
    const others = this.#requests.get(connection);
    if (others !== undefined) {
      others.push(request);
      return;
    }
    this.#requests.set(connection, [request]);
    (isKnown ? this.#known : this.#new).add(connection);
  }

  take(): WaitingRequest {
    this.size--;
    const isNewNext = ++this.#turn % newEvery === 0;
    const [first, second] = isNewNext ? [this.#new, this.#known] : [this.#known, this.#new];
    const connection = first.take() ?? second.take()!;
    const requests = this.#requests.get(connection)!;
    const request = requests.shift()!;
    if (requests.length > 0) this.#known.add(connection);
    else this.#requests.delete(connection);
    return request;
  }
}

/** Gives the newest and the oldest in turn. */
class BothEnds {
  #queue: object[] = [];
  #taken = 0;
  #isNewests = false;

  add(connection: object): void {
    this.#queue.push(connection);
  }

  take(): object | undefined {
    if (this.#queue.length === this.#taken) return undefined;
    this.#isNewests = !this.#isNewests;
    const found = this.#isNewests ? this.#queue.pop()! : this.#queue[this.#taken++]!;
    if (this.#taken * 2 >= this.#queue.length) {
      this.#queue = this.#queue.slice(this.#taken);
      this.#taken = 0;
    }
    return found;
  }
}

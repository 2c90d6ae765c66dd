// Password hashes wait here for a thread. A hash takes tens of milliseconds on one of libuv's four threads, which
// also serve the disk, so that only a few run at a time.
//
// The queue is fair: tenants are served round-robin, and the addresses of a tenant round-robin among each other.
// Logins go before changes of passwords, but one hash in eight is a change if any waits, so that changes do not
// starve. Each tenant may have so many waiting of each kind; one more is refused.

/** Too many hashes of the tenant wait already. */
class TooManyHashes extends Error {
  override readonly name = 'TooManyHashes';
}

export const hashKinds = ['login', 'change'] as const;
export type HashKind = (typeof hashKinds)[number];

/** Purpose of a hash. */
export interface HashRequest {
  kind: HashKind;
  /** Tenants that do not exist share one queue: ''. */
  tenant: string;
  /** Address of the client; '' if unknown. */
  address: string;
}

interface HashQueueOptions {
  /** Hashes that run at a time. */
  atOnce: number;
  /** Limit of waiting hashes of one tenant, by kind. */
  mostWaiting: Readonly<Record<HashKind, number>>;
}

const changeEvery = 8;

type Start = () => void;

/** Queue of one tenant. */
interface TenantQueue {
  waiting: number;
  /** By address, the next to be served first. */
  readonly addresses: Map<string, Start[]>;
}

export class HashQueue {
  /** Since the start of the process. */
  readonly started = { login: 0, change: 0 };
  readonly refused = { login: 0, change: 0 };
  readonly #options: HashQueueOptions;
  /** By tenant, the next to be served first. */
  readonly #queues: Readonly<Record<HashKind, Map<string, TenantQueue>>> = {
    login: new Map(),
    change: new Map(),
  };
  #running = 0;
  /** Logins started since the last change. */
  #loginsInARow = 0;

  constructor(options: HashQueueOptions) {
    this.#options = options;
  }

  waiting(kind: HashKind): number {
    let sum = 0;
    for (const { waiting } of this.#queues[kind].values()) sum += waiting;
    return sum;
  }

  /** Runs `hash` when a slot is free. Rejects with `TooManyHashes` when too many hashes of the tenant are queued. */
  async run<T>(request: HashRequest, hash: () => Promise<T>): Promise<T> {
    if (this.#running < this.#options.atOnce) this.#running++;
    else await this.#enqueue(request);
    this.started[request.kind]++;
    try {
      return await hash();
    } finally {
      this.#startNext();
    }
  }

  #enqueue({ kind, tenant, address }: HashRequest): Promise<void> {
    const queues = this.#queues[kind];
    let queue = queues.get(tenant);
    if (queue === undefined) {
      queue = { waiting: 0, addresses: new Map() };
      queues.set(tenant, queue);
    }
    if (queue.waiting >= this.#options.mostWaiting[kind]) {
      this.refused[kind]++;
      const what = kind === 'login' ? 'logins' : 'password changes';
      throw new TooManyHashes(`too many ${what} at once, try again later`);
    }
    queue.waiting++;
    const { addresses } = queue;
    return new Promise((resolve) => {
      const starts = addresses.get(address);
      if (starts === undefined) addresses.set(address, [resolve]);
      else starts.push(resolve);
    });
  }

  /** Passes the slot to the next hash, so `#running` stays the same; without one, the slot becomes free. */
  #startNext(): void {
    const start = this.#next();
    if (start === undefined) this.#running--;
    else start();
  }

  #next(): Start | undefined {
    const { login, change } = this.#queues;
    const isChangeNext = this.#loginsInARow >= changeEvery - 1;
    const kind = (isChangeNext || login.size === 0) && change.size > 0 ? 'change' : 'login';
    this.#loginsInARow = kind === 'change' ? 0 : this.#loginsInARow + 1;
    return takeFirst(this.#queues[kind]);
  }
}

/** Removes the next request of the next tenant, and moves both to the end of the round. */
function takeFirst(queues: Map<string, TenantQueue>): Start | undefined {
  for (const [tenant, queue] of queues) {
    queues.delete(tenant);
    for (const [address, starts] of queue.addresses) {
      queue.addresses.delete(address);
      const start = starts.shift();
      if (starts.length > 0) queue.addresses.set(address, starts);
      queue.waiting--;
      if (queue.waiting > 0) queues.set(tenant, queue);
      return start;
    }
  }
  return undefined;
}

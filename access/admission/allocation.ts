// How much of a server's capacity each client gets (Amazon, "Fairness in multi-tenant systems"). `hard`: its quota is
// a ceiling. `stacked`: beyond its quota it may use what the others leave, and loses that first when they claim theirs.

export type AllocationPolicy = 'hard' | 'stacked';

/** `own` is within the quota; `spare` beyond it, on what others leave. */
export type Allocated = 'own' | 'spare' | 'no';

const windowMs = 1000;
const parts = 10;
const partMs = windowMs / parts;

/** Use in the last second, in tenths. */
class RecentUse {
  readonly #parts = new Float64Array(parts + 1);
  #part = 0;
  /** Of the tenth that has begun and the nine before it. */
  total = 0;

  advance(part: number): void {
    if (part <= this.#part) return;
    const slots = this.#parts.length;
    for (let p = Math.max(this.#part + 1, part - slots + 1); p <= part; p++) {
      // The tenth that is kept beyond the window is that of `before`.
      this.total -= this.#parts[(p + 1) % slots]!;
      this.#parts[p % slots] = 0;
    }
    this.#part = part;
  }

  /** In the ten tenths before the one that has begun. */
  get before(): number {
    const slots = this.#parts.length;
    let sum = this.total - this.#parts[this.#part % slots]!;
    sum += this.#parts[(this.#part + 1) % slots]!;
    return sum;
  }

  add(units: number): void {
    const at = this.#part % this.#parts.length;
    this.#parts[at] = this.#parts[at]! + units;
    this.total += units;
  }
}

interface Client {
  quota: number;
  own: RecentUse;
}

export class Allocation {
  readonly #capacity: number;
  readonly #policy: AllocationPolicy;
  readonly #clients = new Map<string, Client>();
  /** What was within quotas. */
  readonly #owned = new RecentUse();
  #part = -1;
  /** What may be lent in this tenth of a second. */
  #spare = 0;

  /** `capacity` in units a second. */
  constructor(capacity: number, policy: AllocationPolicy = 'stacked') {
    this.#capacity = capacity;
    this.#policy = policy;
  }

  /** Units a second. */
  setQuota(client: string, quota: number): void {
    const known = this.#clients.get(client);
    if (known === undefined) this.#clients.set(client, { quota, own: new RecentUse() });
    else known.quota = quota;
  }

  admit(client: string, cost: number, now: number): Allocated {
    const known = this.#clients.get(client);
    this.#advance(Math.floor(now / partMs));
    if (known !== undefined) {
      known.own.advance(this.#part);
      if (known.own.total + cost <= known.quota) {
        known.own.add(cost);
        this.use(cost, now);
        return 'own';
      }
    }
    // It is not the client's own use: that would keep it from its quota a moment later.
    return this.borrow(cost, now) ? 'spare' : 'no';
  }

  /** Units were spent within a quota. */
  use(units: number, now: number): void {
    this.#advance(Math.floor(now / partMs));
    this.#owned.add(units);
  }

  /** Takes units of what quotas leave, if there are so many. */
  borrow(cost: number, now: number): boolean {
    if (this.#policy === 'hard') return false;
    this.#advance(Math.floor(now / partMs));
    if (this.#spare < cost) return false;
    this.#spare -= cost;
    return true;
  }

  #advance(part: number): void {
    if (part <= this.#part) return;
    const passed = part - this.#part;
    this.#part = part;
    this.#owned.advance(part);
    // What quotas left in the last second is what they are expected to leave in this one. What was not lent is
    // kept for as long: when others claim their quotas it is gone within a second.
    const left = Math.max(0, this.#capacity - this.#owned.before);
    this.#spare = Math.min(left, this.#spare + (left * passed) / parts);
  }
}

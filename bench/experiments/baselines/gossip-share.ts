// Division of a quota by gossip (Amazon, "Fairness in multi-tenant systems"): each server sends its
// demand to all others every period, and takes the fraction of the quota that its demand is of the
// total. There is no coordinator; n servers send n(n - 1) messages a period.

interface GossipShareOptions {
  /** Milliseconds from one message to the next. */
  periodMs: number;
  /**
   * Fraction of an equal share that a server has without demand, so that it need not refuse its
   * first request.
   */
  floor: number;
  /** Periods after which a server that was not heard of is taken for gone. */
  patience: number;
}

const gossipShareDefaults: GossipShareOptions = { periodMs: 1000, floor: 0.02, patience: 3 };

interface Peer {
  rate: number;
  at: number;
}

export class GossipShare {
  readonly #options: GossipShareOptions;
  readonly #peers = new Map<string, Peer>();
  #quota: number;
  #asked = 0;
  #since: number;
  #rate = 0;

  /** `quota` in units a second, of all servers. `peers` are the others that are known to be there. */
  constructor(
    quota: number,
    peers: Iterable<string>,
    now: number,
    options: Partial<GossipShareOptions> = {},
  ) {
    this.#options = { ...gossipShareDefaults, ...options };
    this.#quota = quota;
    this.#since = now;
    for (const peer of peers) this.#peers.set(peer, { rate: 0, at: now });
  }

  setQuota(quota: number): void {
    this.#quota = quota;
  }

  /** Units were asked of this server, admitted or not. */
  observe(units: number): void {
    this.#asked += units;
  }

  /** To be called each period: units a second, to be sent to all others. */
  endPeriod(now: number): number {
    if (now > this.#since) this.#rate = (this.#asked * 1000) / (now - this.#since);
    this.#asked = 0;
    this.#since = now;
    for (const [name, { at }] of this.#peers) {
      if (now - at > this.#options.patience * this.#options.periodMs) this.#peers.delete(name);
    }
    return this.#rate;
  }

  receive(peer: string, rate: number, now: number): void {
    const known = this.#peers.get(peer);
    if (known === undefined) {
      this.#peers.set(peer, { rate, at: now });
      return;
    }
    known.rate = rate;
    known.at = now;
  }

  forget(peer: string): void {
    this.#peers.delete(peer);
  }

  /** Units a second. To be looked at after messages, not for each request. */
  share(): number {
    let total = this.#rate;
    for (const { rate } of this.#peers.values()) total += rate;
    const equal = this.#quota / (this.#peers.size + 1);
    if (total <= 0) return equal;
    const { floor } = this.#options;
    return equal * floor + (this.#quota * (1 - floor) * this.#rate) / total;
  }
}

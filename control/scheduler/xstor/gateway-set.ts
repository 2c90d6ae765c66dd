// The gateways of a pool and their life cycle: starting, serving, draining, removed (X-Stor, section 3). A draining gateway
// accepts no new requests, finishes its current requests, and returns its share of the quota.

import {
  evictions,
  GatewayScaler,
  type HostNode,
  hostsFor,
  usualHosts,
  usualScaling,
} from './gateway-scaler.ts';

type GatewayState = 'starting' | 'serving' | 'draining';

/** Scheduler of the pool's request units. The shares of all gateways between `join` and `leave` add up to the quota. */
interface QuotaShares {
  join(gateway: string): void;
  leave(gateway: string): void;
}

/** Executes the changes. */
interface GatewayActions {
  start(gateway: string, node: number): void;
  /** The gateway takes no further request. It confirms that with a report. */
  stopAccepting(gateway: string): void;
  /** The gateway ends. Requests that it still has are cut. */
  stop(gateway: string): void;
}

/** A gateway's account of itself. */
interface GatewayReport {
  /** Whether it takes requests. */
  accepts: boolean;
  connections: number;
  inFlight: number;
}

export interface GatewaySetOptions {
  shares: QuotaShares;
  actions: GatewayActions;
  scaler?: GatewayScaler;
  /** Part of a node's processors that a gateway has. */
  gatewayShare: number;
  /** Time that a draining gateway has for its requests. */
  drainMs?: number;
}

interface Gateway {
  readonly id: string;
  readonly node: number;
  state: GatewayState;
  connections: number;
  /** Time at which the gateway is stopped even with open connections. */
  endsAt: number;
}

/** A node that can host gateways. The set itself counts the gateways on it. */
export type Host = Omit<HostNode, 'gateways'>;

/** Default time of a draining gateway in milliseconds: as long as a typical client waits for one answer. */
export const usualDrainMs = 30_000;

export class GatewaySet {
  readonly #options: Required<GatewaySetOptions>;
  readonly #gateways = new Map<string, Gateway>();
  #started = 0;

  constructor(options: GatewaySetOptions) {
    this.#options = {
      scaler: new GatewayScaler(usualScaling),
      drainMs: usualDrainMs,
      ...options,
    };
  }

  // ---- reads

  /** State of the gateway; undefined once it is removed. */
  stateOf(gateway: string): GatewayState | undefined {
    return this.#gateways.get(gateway)?.state;
  }

  /** Gateways that serve or are about to. */
  get count(): number {
    return this.#count('starting') + this.#count('serving');
  }

  list(): readonly Readonly<Gateway>[] {
    return [...this.#gateways.values()];
  }

  /** Ids of the gateways that are not draining, in the order in which they should leave. */
  leaving(hosts: readonly Host[]): string[] {
    const cpu = new Map(hosts.map((host) => [host.node, host.cpu]));
    const cpuOf = ({ node }: Gateway): number => cpu.get(node) ?? 0;
    const isPressed = (one: Gateway): boolean => cpuOf(one) > usualHosts.evictAbove;
    return [...this.#gateways.values()]
      .filter(({ state }) => state !== 'draining')
      .sort(
        (a, b) =>
          Number(isPressed(b)) - Number(isPressed(a)) ||
          (isPressed(a) ? cpuOf(b) - cpuOf(a) : 0) ||
          a.connections - b.connections ||
          cpuOf(b) - cpuOf(a),
      )
      .map(({ id }) => id);
  }

  // ---- what becomes known

  /** Called when a gateway has started. It joins the shares of the quota. */
  serves(gateway: string): void {
    const found = this.#gateways.get(gateway);
    if (found?.state !== 'starting') return;
    found.state = 'serving';
    this.#options.shares.join(gateway);
  }

  report(gateway: string, { accepts, connections, inFlight }: GatewayReport): void {
    const found = this.#gateways.get(gateway);
    if (found === undefined) return;
    found.connections = connections;
    // A report from before it was told to drain says nothing of requests that came after it.
    if (found.state === 'draining' && !accepts && inFlight === 0) this.#end(found);
  }

  /** Called when the gateway's process is known to have ended. */
  lost(gateway: string): void {
    const found = this.#gateways.get(gateway);
    if (found !== undefined) this.#remove(found);
  }

  // ---- changes

  /** Starts a gateway on the node. Returns the gateway's id, which is never reused. */
  start(node: number): string {
    const id = `gateway-${++this.#started}`;
    this.#gateways.set(id, { id, node, state: 'starting', connections: 0, endsAt: Infinity });
    this.#options.actions.start(id, node);
    return id;
  }

  /** Starts `count` gateways; fewer if not enough nodes have room. */
  grow(count: number, hosts: readonly Host[]): void {
    const { gatewayShare } = this.#options;
    for (const node of hostsFor(count, this.#hosts(hosts), gatewayShare)) this.start(node);
  }

  /** Starts to drain a gateway. Returns false for the last serving gateway, because the quota needs a holder. */
  drain(gateway: string, now: number): boolean {
    const found = this.#gateways.get(gateway);
    if (found === undefined || found.state === 'draining') return false;
    if (found.state === 'starting') {
      this.#end(found);
      return true;
    }
    if (this.#count('serving') === 1) return false;
    found.state = 'draining';
    found.endsAt = now + this.#options.drainMs;
    this.#options.actions.stopAccepting(gateway);
    return true;
  }

  /** Stops gateways whose time for draining is over. */
  tick(now: number): void {
    for (const one of [...this.#gateways.values()]) if (now >= one.endsAt) this.#end(one);
  }

  /**
   * Gateways leave nodes that need their processors, and there are as many as the load needs. `use` is the mean over
   * those counted by `count`.
   */
  adjust(now: number, use: number, hosts: readonly Host[]): void {
    this.tick(now);
    const wanted = this.#options.scaler.desired(now, this.count, use);
    for (const node of evictions(this.#hosts(hosts, 'serving'))) {
      // One at a time: what a node has once that one is gone shows whether another has to leave.
      if (this.#on(node, 'draining') > 0) continue;
      const first = this.leaving(hosts).find((id) => this.#isServingOn(id, node));
      if (first !== undefined) this.drain(first, now);
    }
    const missing = wanted - this.count;
    if (missing > 0) this.grow(missing, hosts);
    for (const id of this.leaving(hosts)) {
      if (this.count <= wanted) break;
      this.drain(id, now);
    }
  }

  // ---- inside

  #end(gateway: Gateway): void {
    this.#options.actions.stop(gateway.id);
    this.#remove(gateway);
  }

  /**
   * Removes the gateway and returns its share. This happens last, because the gateway may spend from its share until its
   * last request is done.
   */
  #remove({ id, state }: Gateway): void {
    this.#gateways.delete(id);
    if (state !== 'starting') this.#options.shares.leave(id);
  }

  #count(state: GatewayState): number {
    let count = 0;
    for (const one of this.#gateways.values()) if (one.state === state) count++;
    return count;
  }

  #on(node: number, state?: GatewayState): number {
    let count = 0;
    for (const one of this.#gateways.values()) {
      if (one.node === node && (state === undefined || one.state === state)) count++;
    }
    return count;
  }

  #isServingOn(id: string, node: number): boolean {
    const found = this.#gateways.get(id)!;
    return found.node === node && found.state === 'serving';
  }

  /** With the gateways that they have, those in one state or all. */
  #hosts(hosts: readonly Host[], state?: GatewayState): HostNode[] {
    return hosts.map((host) => ({ ...host, gateways: this.#on(host.node, state) }));
  }
}

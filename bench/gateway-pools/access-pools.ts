// Assignment of tenants to gateways (X-Stor, section 5.2). Pools of gateways are disjoint, and a
// tenant belongs to one pool: a fault or a poisonous request that takes gateways down stays within
// a pool, and a gateway holds the routes of its pool's tenants only. A single pool switches the
// mechanism off.
//
// A tenant moves to another pool in steps, each of which ends when all its parties have
// acknowledged it:
//
//   loading     the gateways of the new pool fetch its routes; requests go to the old one
//   switching   the balancers learn to send to the new pool; both serve
//   draining    the gateways of the old pool finish what they have; both serve
//
// So at no moment may a balancer send a request to a gateway that does not know its tenant.

type MovePhase = 'loading' | 'switching' | 'draining';

export interface Move {
  readonly tenant: number;
  readonly from: string;
  readonly to: string;
  readonly phase: MovePhase;
  /** Gateways or balancers that are still to acknowledge the phase. */
  readonly waitingFor: ReadonlySet<string>;
}

interface MoveState {
  tenant: number;
  from: string;
  to: string;
  phase: MovePhase;
  waitingFor: Set<string>;
}

interface Pool {
  /** Units a second, by gateway. */
  gateways: Map<string, number>;
  capacity: number;
  /**
   * Quota of the tenants whose routes its gateways hold: tenants being moved count in both pools.
   */
  quota: number;
  routes: number;
  tenants: Set<number>;
}

interface Tenant {
  quota: number;
  routes: number;
  /** Where new requests are to go. */
  pool: string;
  move: MoveState | undefined;
}

interface AccessPoolsOptions {
  /**
   * Tolerance relative to the mean load: pools whose loads differ by no more count as equally
   * loaded, and the one with fewest tenants and routes is taken. By the loads alone (0), a pool
   * with a few large tenants has few tenants, and the other pools have more that can be hit at
   * once.
   */
  tolerance: number;
}

export const accessPoolsDefaults: AccessPoolsOptions = { tolerance: 0.2 };

export class AccessPools {
  readonly #options: AccessPoolsOptions;
  readonly #pools = new Map<string, Pool>();
  readonly #poolOfGateway = new Map<string, string>();
  readonly #tenants = new Map<number, Tenant>();
  readonly #balancers = new Set<string>();
  readonly #moves = new Map<number, MoveState>();

  constructor(options: Partial<AccessPoolsOptions> = {}) {
    this.#options = { ...accessPoolsDefaults, ...options };
  }

  // ---- reads
  //

  addPool(name: string): void {
    if (this.#pools.has(name)) return;
    this.#pools.set(name, {
      gateways: new Map(),
      capacity: 0,
      quota: 0,
      routes: 0,
      tenants: new Set(),
    });
  }

  /** `capacity` in units a second. To be called once it has the routes of all that `tenantsOf` its pool names. */
  addGateway(pool: string, gateway: string, capacity: number): void {
    this.removeGateway(gateway);
    const into = this.#pool(pool);
    into.gateways.set(gateway, capacity);
    into.capacity += capacity;
    this.#poolOfGateway.set(gateway, pool);
    // A pool without gateways could not be moved to.
    for (const move of this.#moves.values()) this.#advance(move);
  }

  /** Removes a gateway; moves no longer wait for it. */
  removeGateway(gateway: string): void {
    const name = this.#poolOfGateway.get(gateway);
    if (name === undefined) return;
    this.#poolOfGateway.delete(gateway);
    const pool = this.#pool(name);
    pool.capacity -= pool.gateways.get(gateway)!;
    pool.gateways.delete(gateway);
    if (pool.gateways.size === 0) pool.capacity = 0;
    this.#waitNoMoreFor(gateway);
  }

  /** One that sends requests to pools, and must know of moves. */
  addBalancer(balancer: string): void {
    this.#balancers.add(balancer);
  }

  removeBalancer(balancer: string): void {
    this.#balancers.delete(balancer);
    this.#waitNoMoreFor(balancer);
  }

  pools(): IterableIterator<string> {
    return this.#pools.keys();
  }

  gatewaysOf(pool: string): IterableIterator<string> {
    return this.#pool(pool).gateways.keys();
  }

  /** Those whose routes its gateways hold, or fetch. */
  tenantsOf(pool: string): ReadonlySet<number> {
    return this.#pool(pool).tenants;
  }

  /** The quotas of its tenants over its capacity. */
  loadOf(pool: string): number {
    const { quota, capacity } = this.#pool(pool);
    return capacity > 0 ? quota / capacity : Infinity;
  }

  // ---- tenants

  /**
   * Puts a new tenant into the pool with the least load, which it returns. `quota` in units a
   * second; `routes` is the number of its partitions' routes.
   */
  assign(tenant: number, quota: number, routes = 1): string {
    if (this.#tenants.has(tenant)) throw new RangeError(`tenant ${tenant} has a pool`);
    const pool = this.leastLoaded();
    if (pool === undefined) throw new RangeError('no pool has a gateway');
    const known: Tenant = { quota, routes, pool, move: undefined };
    this.#tenants.set(tenant, known);
    this.#enter(pool, tenant, known);
    return pool;
  }

  setQuota(tenant: number, quota: number): void {
    const known = this.#tenant(tenant);
    const { from, to } = known.move ?? { from: known.pool, to: known.pool };
    for (const name of new Set([from, to])) this.#pool(name).quota += quota - known.quota;
    known.quota = quota;
  }

  remove(tenant: number): void {
    const known = this.#tenant(tenant);
    const { from, to } = known.move ?? { from: known.pool, to: known.pool };
    for (const name of new Set([from, to])) this.#leave(name, tenant, known);
    this.#moves.delete(tenant);
    this.#tenants.delete(tenant);
  }

  /** Where balancers are to send its requests. */
  poolOf(tenant: number): string {
    return this.#tenant(tenant).pool;
  }

  /** Undefined if no pool, or none but `other`, has a gateway. */
  leastLoaded(other?: string): string | undefined {
    let least = Infinity;
    let loads = 0;
    let count = 0;
    let tenants = 0;
    let routes = 0;
    for (const [name, pool] of this.#pools) {
      const load = this.loadOf(name);
      if (load === Infinity) continue;
      loads += load;
      count++;
      tenants += pool.tenants.size;
      routes += pool.routes;
      if (name !== other) least = Math.min(least, load);
    }
    const enough = least + (this.#options.tolerance * loads) / count;
    let best: string | undefined;
    let fewest = Infinity;
    for (const [name, pool] of this.#pools) {
      if (name === other || !(this.loadOf(name) <= enough) || pool.capacity === 0) continue;
      const part = pool.tenants.size / Math.max(1, tenants) + pool.routes / Math.max(1, routes);
      if (part >= fewest) continue;
      best = name;
      fewest = part;
    }
    return best;
  }

  // ---- moves

  moves(): Iterable<Move> {
    return this.#moves.values();
  }

  moveOf(tenant: number): Move | undefined {
    return this.#tenant(tenant).move;
  }

  /** Begins to move a tenant that is not moving, to the least loaded other pool unless told where. */
  beginMove(tenant: number, to?: string): Move | undefined {
    const known = this.#tenant(tenant);
    const from = known.pool;
    const target = to ?? this.leastLoaded(from);
    if (known.move !== undefined || target === undefined || target === from) return undefined;
    const waitingFor = new Set(this.#pool(target).gateways.keys());
    const move: MoveState = { tenant, from, to: target, phase: 'loading', waitingFor };
    known.move = move;
    this.#moves.set(tenant, move);
    this.#enter(target, tenant, known);
    return move;
  }

  /** As long as no balancer was told of the new pool: later it is to be moved back. */
  cancelMove(tenant: number): boolean {
    const known = this.#tenant(tenant);
    if (known.move?.phase !== 'loading') return false;
    this.#leave(known.move.to, tenant, known);
    this.#endMove(known);
    return true;
  }

  /**
   * Records that a party of the move has done its part of a phase: fetched the routes; learned the
   * new pool; or had no request of the tenant for so long that none can be in flight. Duplicate and
   * late acknowledgements are ignored.
   */
  acknowledge(tenant: number, phase: MovePhase, who: string): void {
    const move = this.#tenants.get(tenant)?.move;
    if (move?.phase !== phase || !move.waitingFor.delete(who)) return;
    this.#advance(move);
  }

  #advance(move: MoveState): void {
    while (move.waitingFor.size === 0) {
      const known = this.#tenant(move.tenant);
      if (move.phase === 'loading') {
        if (this.#pool(move.to).gateways.size === 0) return;
        known.pool = move.to;
        move.phase = 'switching';
        for (const balancer of this.#balancers) move.waitingFor.add(balancer);
      } else if (move.phase === 'switching') {
        move.phase = 'draining';
        for (const gateway of this.gatewaysOf(move.from)) move.waitingFor.add(gateway);
      } else {
        this.#leave(move.from, move.tenant, known);
        this.#endMove(known);
        return;
      }
    }
  }

  #endMove(tenant: Tenant): void {
    this.#moves.delete(tenant.move!.tenant);
    tenant.move = undefined;
  }

  #waitNoMoreFor(who: string): void {
    for (const move of this.#moves.values()) {
      if (move.waitingFor.delete(who)) this.#advance(move);
    }
  }

  #enter(name: string, tenant: number, { quota, routes }: Tenant): void {
    const pool = this.#pool(name);
    pool.tenants.add(tenant);
    pool.quota += quota;
    pool.routes += routes;
  }

  #leave(name: string, tenant: number, { quota, routes }: Tenant): void {
    const pool = this.#pool(name);
    if (!pool.tenants.delete(tenant)) return;
    pool.quota = pool.tenants.size === 0 ? 0 : pool.quota - quota;
    pool.routes -= routes;
  }

  #pool(name: string): Pool {
    const pool = this.#pools.get(name);
    if (pool === undefined) throw new RangeError(`no pool ${name}`);
    return pool;
  }

  #tenant(number: number): Tenant {
    const tenant = this.#tenants.get(number);
    if (tenant === undefined) throw new RangeError(`no tenant ${number}`);
    return tenant;
  }
}

/**
 * Spreads requests over the gateways of a pool by their number only: to the gateway with the fewest
 * recent requests.
 */
export class LeastRequests {
  readonly #counts: Float64Array;
  readonly #isUp: Uint8Array;
  #last = -1;

  constructor(gateways: number) {
    this.#counts = new Float64Array(gateways);
    this.#isUp = new Uint8Array(gateways).fill(1);
  }

  /** Index of the gateway that gets the next request; -1 if none is up. */
  pick(): number {
    const counts = this.#counts;
    const { length } = counts;
    let best = -1;
    // Those with equal counts take turns.
    for (let n = 1; n <= length; n++) {
      const i = (this.#last + n) % length;
      if (this.#isUp[i] === 1 && (best < 0 || counts[i]! < counts[best]!)) best = i;
    }
    if (best < 0) return -1;
    counts[best] = counts[best]! + 1;
    this.#last = best;
    return best;
  }

  /** One that comes back begins with as many as the others had: it does not get all until it has caught up. */
  setUp(gateway: number, isUp: boolean): void {
    if (isUp && this.#isUp[gateway] === 0) {
      let least = Infinity;
      for (let i = 0; i < this.#counts.length; i++) {
        if (this.#isUp[i] === 1) least = Math.min(least, this.#counts[i]!);
      }
      this.#counts[gateway] = least === Infinity ? 0 : least;
    }
    this.#isUp[gateway] = isUp ? 1 : 0;
  }

  /** Called about once a second: decays earlier requests. */
  fade(factor = 0.5): void {
    for (let i = 0; i < this.#counts.length; i++) this.#counts[i] = this.#counts[i]! * factor;
  }
}

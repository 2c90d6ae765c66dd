// Limits on request units across the nodes of a cluster: each node reports each second to the
// leader of the metadata the units that its planes have spent and lacked, and receives its shares
// of the limits.

import type { QuotaDemand, QuotaShare } from '../../access/admission/shares/shared-quotas.ts';
import {
  shareFloor,
  shareLeaseMs,
  SharedQuotas,
} from '../../access/admission/shares/shared-quotas.ts';
import type { Json } from '../../control/metadata/document-store.ts';
import type { PlaneHost, Planes } from '../planes/plane-host.ts';
import type { ClusterMetadata } from './cluster-metadata.ts';

const question = 'quota/shares';
const everyMs = 1000;
/** Timeouts for planes and for the leader: together less than a second. */
const planeTimeoutMs = 300;
const leaderTimeoutMs = 500;

type PlaneName = keyof Planes;
type Demands = Partial<Record<PlaneName, readonly QuotaDemand[]>>;
type Shares = Partial<Record<PlaneName, readonly QuotaShare[]>>;

export class QuotaKeeper {
  readonly #metadata: ClusterMetadata;
  readonly #planes: Planes;
  readonly #timer: NodeJS.Timeout;
  /** While this node leads the metadata: by plane. */
  #kept: Map<string, SharedQuotas> | undefined;
  #renewedAt = -Infinity;
  #isBusy = false;

  constructor(metadata: ClusterMetadata, planes: Planes) {
    this.#metadata = metadata;
    this.#planes = planes;
    metadata.handlers.on(question, (body, { node }) => {
      return this.#assign(node, body as Demands) as unknown as Json;
    });
    this.#timer = setInterval(() => void this.renew(), everyMs);
    this.#timer.unref();
  }

  /** Equal share, used for limits whose share is unknown. */
  get #equalShare(): number {
    return 1 / Math.max(1, this.#metadata.nodes().length);
  }

  async renew(): Promise<void> {
    if (this.#isBusy) return;
    this.#isBusy = true;
    try {
      await this.#renew();
    } finally {
      this.#isBusy = false;
    }
  }

  async #renew(): Promise<void> {
    // Another leader may assign shares by now. Shares of an earlier leadership here would be assigned twice.
    if (!this.#metadata.isLeader) this.#kept = undefined;
    const names = Object.keys(this.#planes) as PlaneName[];
    const demands: Demands = {};
    await eachOf(names, async (name) => {
      const plane: PlaneHost = this.#planes[name];
      if (plane.isUp) demands[name] = await plane.call('quotaDemands', undefined, planeTimeoutMs);
    });
    const isLimited = Object.values(demands).some((of) => of.length > 0);
    const shares = isLimited ? await this.#askLeader(demands) : {};
    const isLate = performance.now() - this.#renewedAt > shareLeaseMs;
    // The leader gives the shares of a silent node to others.
    const usual = this.#equalShare * (isLimited && isLate ? shareFloor : 1);
    if (shares === undefined && !isLate) return;
    await eachOf(names, async (name) => {
      const plane: PlaneHost = this.#planes[name];
      const told = { usual, shares: shares?.[name] ?? [] };
      if (plane.isUp) await plane.call('quotaShares', told, planeTimeoutMs);
    });
  }

  async #askLeader(demands: Demands): Promise<Shares | undefined> {
    const { leader } = this.#metadata;
    if (leader === 0) return undefined;
    try {
      const body = demands as unknown as Json;
      const shares = await this.#metadata.ask(leader, question, body, leaderTimeoutMs);
      this.#renewedAt = performance.now();
      return shares as unknown as Shares;
    } catch {
      // The leader has lost its role, or is out of reach: the lease continues until it expires.
      return undefined;
    }
  }

  #assign(node: number, demands: Demands): Shares {
    if (!this.#metadata.isLeader) {
      this.#kept = undefined;
      throw new Error('this node does not lead the metadata');
    }
    const now = performance.now();
    this.#kept ??= new Map();
    const shares: Shares = {};
    for (const name of Object.keys(demands) as PlaneName[]) {
      let quotas = this.#kept.get(name);
      if (quotas === undefined) {
        const nodes = this.#metadata.nodes().map((one) => String(one.node));
        this.#kept.set(name, (quotas = new SharedQuotas(nodes, now)));
      }
      shares[name] = quotas.report(String(node), demands[name] ?? [], now);
    }
    return shares;
  }

  close(): void {
    clearInterval(this.#timer);
  }
}

/** A plane that is too busy to answer keeps its earlier shares. */
async function eachOf<T>(all: readonly T[], what: (one: T) => Promise<void>): Promise<void> {
  await Promise.allSettled(all.map(what));
}

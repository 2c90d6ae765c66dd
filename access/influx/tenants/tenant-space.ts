// All that the requests of one tenant work with and share.

import type { Clock } from '../../../universal-row/environment.ts';
import type { SeriesStore } from '../../../contracts/series-store.ts';
import {
  defaultTenant,
  noLimits,
  type TenantLimits,
} from '../../../contracts/tenancy/definitions.ts';
import type { ServerFacts } from '../statements/context.ts';
import { type QueriesElsewhere, QueryRegistry } from '../statements/query-registry.ts';
import { ownerOf } from './database-names.ts';
import { TenantMemory } from './query-memory.ts';

interface TenantSpaceOptions {
  name: string;
  number: number;
  /** Its own databases, by its own names. */
  store: SeriesStore;
  /** As they are at the moment. */
  limits: () => TenantLimits;
  clock: Clock;
  queriesElsewhere?: QueriesElsewhere | undefined;
}

export class TenantSpace {
  readonly name: string;
  readonly number: number;
  readonly store: SeriesStore;
  readonly queries: QueryRegistry;
  readonly memory: TenantMemory;
  /** Open connections whose last request was the tenant's. */
  connections = 0;
  readonly #limits: () => TenantLimits;

  constructor(options: TenantSpaceOptions) {
    this.name = options.name;
    this.number = options.number;
    this.store = options.store;
    this.#limits = options.limits;
    // Those beyond the server's limit wait before they are registered.
    const { clock, queriesElsewhere: elsewhere } = options;
    this.queries = new QueryRegistry({ clock, maxConcurrent: 0, elsewhere });
    this.memory = new TenantMemory(options.name, () => this.limits.queryMemoryBytes);
  }

  get limits(): TenantLimits {
    return this.#limits();
  }

  /** Facts of the server that SHOW SHARDS, SHOW STATS and SHOW DIAGNOSTICS may show. */
  factsOf(server: ServerFacts): ServerFacts {
    return {
      ...server,
      isShared: this.number !== 0,
      ...(server.shards !== undefined && {
        shards: () =>
          server.shards!().flatMap((shard) => {
            const { tenant, name } = ownerOf(shard.database);
            return tenant === this.number ? [{ ...shard, database: name }] : [];
          }),
      }),
      ...(server.statistics !== undefined && {
        statistics: () =>
          server.statistics!().flatMap((statistic) => {
            const kept = statistic.tags?.['database'];
            if (kept === undefined) return this.number === 0 ? [statistic] : [];
            const { tenant, name } = ownerOf(kept);
            if (tenant !== this.number) return [];
            return [{ ...statistic, tags: { ...statistic.tags, database: name } }];
          }),
      }),
    };
  }
}

/** Without tenants: every caller sees all databases. */
export function wholeSpace(store: SeriesStore, clock: Clock): TenantSpace {
  return new TenantSpace({ name: defaultTenant, number: 0, store, limits: () => noLimits, clock });
}

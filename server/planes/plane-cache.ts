// Selects the tables whose reads the Redis plane caches, by their properties and the settings.

import {
  type Load,
  ReadCache,
  type RememberedTable,
  ticksPerTtl,
  ttlMs,
} from '../../access/redis/read-cache.ts';
import type { TableDefinition } from '../../control/metadata/table-definition.ts';
import type { MetricSample } from '../../control/monitor/metric-sample.ts';
import { systemClock, systemRng } from '../../universal-row/environment.ts';
import type { Consistency } from '../../contracts/table-properties.ts';
import type { TenantDefinition } from '../../contracts/tenancy/definitions.ts';
import type { LiveConfig } from '../settings/live-config.ts';
import type { ConfigKey } from '../settings/schema.ts';
import { adder } from './pod-samples.ts';

interface PlaneCacheOptions {
  live: LiveConfig;
  /** Undefined for a table without an owner. */
  ownerOf: (table: number) => TenantDefinition | undefined;
  /** Reads a key again, in the background. */
  reload: (table: RememberedTable, key: Buffer, load: Load) => void;
  /** `inUse` may be another. */
  changed: () => void;
}

export class PlaneCache {
  readonly #options: PlaneCacheOptions;
  readonly #cache: ReadCache;
  #definitions: readonly TableDefinition[] = [];
  #isInUse = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: PlaneCacheOptions) {
    this.#options = options;
    this.#cache = new ReadCache({ rng: systemRng, reload: options.reload });
    this.#cache.resize(options.live.get('redis.gateway-cache-bytes'));
  }

  /** Undefined while no table is cached. */
  get inUse(): ReadCache | undefined {
    return this.#isInUse ? this.#cache : undefined;
  }

  /** Reads that were answered from here: that found a row, and that found none. */
  get found(): number {
    return this.#cache.counts.hits - this.#cache.counts.absent;
  }

  get absent(): number {
    return this.#cache.counts.absent;
  }

  settingChanged(key: ConfigKey): void {
    if (key !== 'redis.gateway-cache-bytes') return;
    this.#cache.resize(this.#options.live.get('redis.gateway-cache-bytes'));
    this.#apply();
  }

  /** All definitions there are. */
  setTables(definitions: readonly TableDefinition[]): void {
    this.#definitions = definitions.filter((definition) => maxAgeMsOf(definition) > 0);
    this.#apply();
  }

  /** The ownership of tables may have changed. */
  tenantsChanged(): void {
    if (this.#definitions.length > 0) this.#apply();
  }

  #apply(): void {
    const { live, ownerOf, changed } = this.#options;
    const isOn = live.get('redis.gateway-cache-bytes') > 0;
    const tables: RememberedTable[] = [];
    for (const definition of isOn ? this.#definitions : []) {
      const owner = ownerOf(definition.id);
      if (owner === undefined) continue;
      const span = { first: owner.firstTable, count: owner.databases };
      const maxAgeMs = maxAgeMsOf(definition);
      tables.push({ table: definition.id, tenant: owner.number, span, maxAgeMs });
    }
    this.#cache.setTables(tables);
    this.#use(tables.length > 0);
    changed();
  }

  #use(isInUse: boolean): void {
    if (isInUse === this.#isInUse) return;
    this.#isInUse = isInUse;
    clearInterval(this.#timer);
    if (!isInUse) {
      this.#cache.clear();
      return;
    }
    this.#timer = setInterval(() => this.#cache.tick(systemClock.monotonic()), ttlMs / ticksPerTtl);
    this.#timer.unref();
  }

  forgetTenant(tenant: number): void {
    this.#cache.forgetTenant(tenant);
  }

  /** Rows have changed by other ways than commands. */
  clear(): void {
    this.#cache.clear();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  samples(): MetricSample[] {
    const samples: MetricSample[] = [];
    const add = adder(samples, {});
    const { bytes, size, counts, refreshes } = this.#cache;
    add('gauge', 'gateway_cache_bytes', 'Memory for cached answers.', bytes);
    add('gauge', 'gateway_cache_entries', 'Cached answers.', size);
    add('counter', 'gateway_cache_hits', 'Reads answered from memory.', counts.hits);
    add('counter', 'gateway_cache_misses', 'Reads that a table had to answer.', counts.misses);
    add('counter', 'gateway_cache_refreshes', 'Answers read again in the background.', refreshes);
    return samples;
  }
}

/** Milliseconds that answers may be old; 0 where none may be, or none are cached. */
function maxAgeMsOf({ model, cacheBypass, consistency }: TableDefinition): number {
  return model === 'kv' && !cacheBypass ? ageOf(consistency) : 0;
}

function ageOf(consistency: Consistency): number {
  switch (consistency.kind) {
    case 'strong':
    case 'lease':
      return 0;
    case 'eventual':
      return Infinity;
    case 'bounded':
      return consistency.maxStalenessMs;
  }
}

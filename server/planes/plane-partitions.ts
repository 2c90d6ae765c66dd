// Ceilings of a table's partitions in the Redis plane, from tables' properties and the settings.

import type { TableDefinition } from '../../control/metadata/table-definition.ts';
import type { MetricSample } from '../../control/monitor/metric-sample.ts';
import type { TenantAccount } from '../../request-units/meter.ts';
import { ChargedUnits } from '../../storage-node/admission/pod/charged-units.ts';
import {
  PartitionCeilings,
  type PartitionedTable,
  type PartitionRules,
} from '../../storage-node/admission/partition/partition-ceilings.ts';
import { systemClock } from '../../universal-row/environment.ts';
import type { TenancyUpdate } from '../../contracts/tenancy/definitions.ts';
import type { LiveConfig } from '../settings/live-config.ts';
import type { ConfigKey } from '../settings/schema.ts';
import { adder } from './pod-samples.ts';

const capKey: ConfigKey = 'admission.partition-cap';
/** Times its part of the quota that one partition may take (ABase, section 4.2). */
const partitionFactor = 3;
const tickMs = 50;

interface PlanePartitionsOptions {
  live: LiveConfig;
  /** Accounts with recent spending, up to date. */
  accounts: () => Iterable<TenantAccount>;
  /** Number of the tenant that owns the table; undefined for one without an owner. */
  ownerOf: (table: number) => number | undefined;
  /** Request units a second that the plane can do; 0 while it is not known. */
  podRate: () => number;
}

export class PlanePartitions {
  readonly ceilings = new PartitionCeilings(systemClock.monotonic());
  readonly #options: PlanePartitionsOptions;
  #definitions: readonly TableDefinition[] = [];
  #charged: ChargedUnits | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: PlanePartitionsOptions) {
    this.#options = options;
    this.#applyRules();
  }

  settingChanged(key: ConfigKey): void {
    if (key === capKey) this.#applyRules();
  }

  /** The plane can do more or less than before. */
  rateChanged(): void {
    this.#applyRules();
  }

  #applyRules(): void {
    this.ceilings.setRules(rulesOf(this.#options), systemClock.monotonic());
    this.#watch();
  }

  /** All definitions there are. */
  setTables(definitions: readonly TableDefinition[]): void {
    this.#definitions = definitions.filter(isCounted);
    this.#applyTables();
  }

  #applyTables(): void {
    const tables: PartitionedTable[] = [];
    for (const { id, partitions } of this.#definitions) {
      const tenant = this.#options.ownerOf(id);
      if (tenant !== undefined) tables.push({ table: id, tenant, partitions });
    }
    this.ceilings.setTables(tables, systemClock.monotonic());
    this.#watch();
  }

  /** Tenants, and so their quotas and whose tables are, have changed. */
  follow({ tenants }: TenancyUpdate): void {
    const units = tenants.map(({ number, limits: { ruPerSecond, burstRu } }) => ({
      tenant: number,
      ruPerSecond,
      burstRu,
    }));
    this.ceilings.setQuotas(units, systemClock.monotonic());
    this.#applyTables();
  }

  forget(tenant: number): void {
    this.#charged?.forget(tenant);
    this.ceilings.setQuotas([{ tenant, ruPerSecond: 0, burstRu: 0 }], systemClock.monotonic());
    this.#watch();
  }

  /** Spending is checked only where ceilings apply. */
  #watch(): void {
    if (this.ceilings.areNeeded === (this.#timer !== undefined)) return;
    if (!this.ceilings.areNeeded) {
      this.close();
      return;
    }
    this.#charged = new ChargedUnits(this.#options.accounts);
    this.#timer = setInterval(() => {
      this.ceilings.tick(this.#charged!.take(), systemClock.monotonic());
    }, tickMs);
    this.#timer.unref();
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#charged = undefined;
  }

  samples(): MetricSample[] {
    const samples: MetricSample[] = [];
    const add = adder(samples, { plane: 'redis' });
    const { isWatched, size } = this.ceilings;
    add('gauge', 'partition_ceilings', '1 while partitions have ceilings.', isWatched ? 1 : 0);
    add('gauge', 'partitions_touched', 'Partitions with a ceiling that were touched lately.', size);
    return samples;
  }
}

/** Ranges of rows are as uneven as their keys are. */
function isCounted({ partitions, shardingKind }: TableDefinition): boolean {
  return partitions > 1 && shardingKind === 'hash';
}

function rulesOf({ live, podRate }: PlanePartitionsOptions): PartitionRules {
  return {
    cap: live.get('admission.partition-cap'),
    factor: partitionFactor,
    podRate: podRate(),
  };
}

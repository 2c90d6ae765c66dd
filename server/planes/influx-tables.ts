// Properties of databases of the InfluxDB plane. Most have none, and are not listed.

import type { SeriesTableDefinition } from '../../control/metadata/table-definition.ts';
import { rulesOf, type TableRules, type TableRulesByName } from '../../storage-node/table-rules.ts';
import { keptName } from './influx-databases.ts';

export class InfluxTables implements TableRulesByName {
  #rules: ReadonlyMap<string, TableRules> = new Map();
  #leased: ReadonlySet<number> = new Set();

  constructor(definitions: readonly SeriesTableDefinition[]) {
    this.set(definitions);
  }

  get(database: string): TableRules | undefined {
    return this.#rules.get(database);
  }

  /** Tenants with a database whose strong reads go by leases: their others gain by it. */
  get leasedTenants(): ReadonlySet<number> {
    return this.#leased;
  }

  /** Replaces all earlier definitions; later changes use them. */
  set(definitions: readonly SeriesTableDefinition[]): void {
    this.#rules = new Map(
      definitions.map((definition) => [keptName(definition), rulesOf(definition)] as const),
    );
    const leased = definitions.filter(({ consistency }) => consistency.kind === 'lease');
    this.#leased = new Set(leased.map(({ tenant }) => tenant));
  }
}

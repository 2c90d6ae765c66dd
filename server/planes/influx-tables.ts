// What the databases of the InfluxDB plane have of properties. Most have none, and are not in here.

import type { SeriesTableDefinition } from '../../control/metadata/table-definition.ts';
import { rulesOf, type TableRules, type TableRulesByName } from '../../storage-node/table-rules.ts';
import { keptName } from './influx-databases.ts';

export class InfluxTables implements TableRulesByName {
  #rules: ReadonlyMap<string, TableRules> = new Map();

  constructor(definitions: readonly SeriesTableDefinition[]) {
    this.set(definitions);
  }

  get(database: string): TableRules | undefined {
    return this.#rules.get(database);
  }

  /** In place of all before. What comes after this goes by it. */
  set(definitions: readonly SeriesTableDefinition[]): void {
    this.#rules = new Map(
      definitions.map((definition) => [keptName(definition), rulesOf(definition)] as const),
    );
  }
}

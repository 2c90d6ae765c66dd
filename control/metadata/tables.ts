// All tables together: the databases of Redis, which are numbers, and those of InfluxDB, which are
// names. A name of both refers to Redis's, and the prefix `series:` selects the other.

import { defaultTenant } from '../../contracts/tenancy/definitions.ts';
import type { TableProperties } from '../../contracts/table-properties.ts';
import type { PartitionCatalog, PartitionOrder, TablePartitions } from './partition-catalog.ts';
import type { SeriesPartition, SeriesTable, SeriesTableCatalog } from './series-table-catalog.ts';
import type { TableCatalog } from './table-catalog.ts';
import {
  seriesModel,
  type TableChange,
  type TableDefinition,
  type TableModel,
} from './table-definition.ts';
import { splitReference, TableError } from './table-rules.ts';

export interface TableDescription extends TableProperties {
  /** Number of a Redis table; missing for others. */
  id?: number;
  name: string;
  model: TableModel | typeof seriesModel;
  tenant: string;
  /** Its name for clients: the number they SELECT, or the name of an InfluxDB database. */
  database: number | string;
  /** Rows in it; missing when no data plane can say. */
  rows?: number;
  /** Made or altered by a person, rather than following the defaults. */
  explicit: boolean;
  /** Model it takes on at the next start, if it is empty then. */
  wantedModel?: string;
}

/** Partitions of a database of InfluxDB. */
export interface SeriesPartitions {
  readonly partitions: readonly (SeriesPartition & { readonly model: typeof seriesModel })[];
}

const seriesPrefix = `${seriesModel}:`;

/** An InfluxDB database that a reference names. */
interface SeriesName {
  tenant: string;
  name: string;
}

export class Tables {
  readonly #rows: TableCatalog;
  readonly #series: SeriesTableCatalog;
  readonly #partitions: PartitionCatalog | undefined;

  /** Without `partitions`, partitions of tables cannot be changed. */
  constructor(rows: TableCatalog, series: SeriesTableCatalog, partitions?: PartitionCatalog) {
    this.#rows = rows;
    this.#series = series;
    this.#partitions = partitions;
  }

  async partitions(
    reference: string,
    within?: string,
  ): Promise<TablePartitions | SeriesPartitions> {
    const series = await this.#seriesCalled(reference, within);
    if (series === undefined) return await this.#changeable().list(reference, within);
    await this.describe(reference, within);
    const found = await this.#series.partitions(series.tenant, series.name);
    return { partitions: found.map((one) => ({ ...one, model: seriesModel }) as const) };
  }

  async changePartitions(
    reference: string,
    order: PartitionOrder,
    within?: string,
  ): Promise<TablePartitions> {
    await this.#expectRows(reference, within);
    return await this.#changeable().order(reference, order, within);
  }

  async cancelPartitionChange(reference: string, within?: string): Promise<TablePartitions> {
    await this.#expectRows(reference, within);
    return await this.#changeable().cancel(reference, within);
  }

  /** Throws for a database of InfluxDB. */
  async #expectRows(reference: string, within: string | undefined): Promise<void> {
    if ((await this.#seriesCalled(reference, within)) === undefined) {
      this.#rows.find(reference, within);
      return;
    }
    throw new TableError(
      'conflict',
      'partitions of time series are fixed when the data directory is made, with influx.partitions',
    );
  }

  #changeable(): PartitionCatalog {
    if (this.#partitions !== undefined) return this.#partitions;
    throw new TableError('conflict', 'partitions are known to a running server only');
  }

  /** Tables of one tenant; or those of the tenant `default` and the non-default ones of others. */
  async list(tenant?: string): Promise<TableDescription[]> {
    const rows = tenant === undefined ? this.#rows.definitions() : this.#rows.tablesOf(tenant);
    const described = await Promise.all(rows.map((definition) => this.#describe(definition)));
    const series = await this.#series.tablesOf(tenant ?? defaultTenant);
    return [...described, ...series.map(describeSeries)];
  }

  /** `within` a tenant a reference is always to one of its own. */
  async describe(reference: string, within?: string): Promise<TableDescription> {
    const series = await this.#seriesCalled(reference, within);
    if (series === undefined) return await this.#describe(this.#rows.find(reference, within));
    const found = await this.#series.find(series.tenant, series.name);
    if (found !== undefined) return describeSeries(found);
    throw new TableError('missing', `no InfluxDB database ${series.name} in ${series.tenant}`);
  }

  async create(reference: string, change: TableChange, within?: string): Promise<TableDescription> {
    const isSeries = change.model === seriesModel;
    const series = isSeries
      ? seriesName(reference, within)
      : await this.#seriesCalled(reference, within);
    if (series === undefined) {
      return await this.#describe(await this.#rows.create(reference, change, within));
    }
    return describeSeries(await this.#series.create(series.tenant, series.name, change));
  }

  async alter(reference: string, change: TableChange, within?: string): Promise<TableDescription> {
    const series = await this.#seriesCalled(reference, within);
    if (series === undefined) {
      const { model, ...others } = change;
      if (!(await this.#holdsRowsElsewhere(reference, model, within))) {
        return await this.#describe(await this.#rows.alter(reference, change, within));
      }
      const altered = await this.#rows.alter(reference, others, within);
      // The rows move while clients continue. The model of the table changes when all rows have moved.
      await this.#changeable().order(
        reference,
        { kind: 'convert', model: model as TableModel },
        within,
      );
      return await this.#describe(altered);
    }
    return describeSeries(await this.#series.alter(series.tenant, series.name, change));
  }

  async #holdsRowsElsewhere(
    reference: string,
    model: TableChange['model'],
    within: string | undefined,
  ): Promise<boolean> {
    if (model === undefined || model === seriesModel || this.#partitions === undefined)
      return false;
    const definition = this.#rows.find(reference, within);
    if (definition.model === model) return false;
    return ((await this.#rows.rowCount(definition.id)) ?? 0) > 0;
  }

  /** Takes back all properties. */
  async reset(reference: string, within?: string): Promise<TableDescription> {
    const series = await this.#seriesCalled(reference, within);
    if (series === undefined) {
      return await this.#describe(await this.#rows.reset(reference, within));
    }
    return describeSeries(await this.#series.reset(series.tenant, series.name));
  }

  /** Undefined if the name is a Redis table's or unknown. */
  async #seriesCalled(reference: string, within?: string): Promise<SeriesName | undefined> {
    const named = seriesName(reference, within);
    if (reference.startsWith(seriesPrefix)) return named;
    // Numbers are Redis's.
    if (/^\d+$/.test(named.name) || this.#isRows(reference, within)) return undefined;
    const found = await this.#series.find(named.tenant, named.name);
    return found === undefined ? undefined : named;
  }

  #isRows(reference: string, within: string | undefined): boolean {
    try {
      this.#rows.find(reference, within);
      return true;
    } catch (error) {
      if (error instanceof TableError && error.reason === 'missing') return false;
      throw error;
    }
  }

  async #describe(definition: TableDefinition): Promise<TableDescription> {
    const { id } = definition;
    const rows = await this.#rows.rowCount(id);
    const wantedModel = this.#rows.wantedModel(id);
    return {
      ...definition,
      ...this.#rows.placeOf(id),
      explicit: this.#rows.isExplicit(id),
      ...(rows === undefined ? {} : { rows }),
      ...(wantedModel === undefined ? {} : { wantedModel }),
    };
  }
}

/** Names of databases have no slashes in them. */
function seriesName(reference: string, within: string | undefined): SeriesName {
  const bare = reference.startsWith(seriesPrefix)
    ? reference.slice(seriesPrefix.length)
    : reference;
  const [first, rest] = splitReference(bare);
  if (rest === undefined) return { tenant: within ?? defaultTenant, name: first };
  if (within !== undefined && first !== within) {
    throw new TableError('missing', `no table ${reference} in tenant ${within}`);
  }
  return { tenant: first, name: rest };
}

function describeSeries({ tenant, definition, explicit }: SeriesTable): TableDescription {
  return { ...definition, tenant, database: definition.name, explicit };
}

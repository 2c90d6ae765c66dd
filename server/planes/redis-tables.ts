// Tables of the Redis plane: the owner of each, the pod of its rows, and its rules. There are many
// more tables than are used, so state is created at the first use.

import {
  isPartition,
  type Partition,
  type PartitionMap,
  undivided,
} from '../../contracts/partition-map.ts';
import {
  partitionMapOf,
  type TableDefinition,
  type TableModel,
} from '../../control/metadata/table-definition.ts';
import {
  noRules,
  rulesOf,
  type TableRules,
  type TableRulesByNumber,
} from '../../storage-node/table-rules.ts';
import { type RowHolder, TenantQuota } from '../../storage-node/tenant-quota.ts';
import type { TenancyUpdate, TenantDefinition } from '../../contracts/tenancy/definitions.ts';
import {
  isLibraryTable,
  libraryTable,
  tenantOfLibraries,
} from '../../contracts/tenancy/library-tables.ts';

/** A table of a tenant being deleted: operations in progress write nothing more. */
const ownerlessRules: TableRules = { ...noRules, readOnly: true };

export class RedisTables {
  readonly #holders: () => Iterable<RowHolder>;
  readonly #isCluster: boolean;
  readonly #definitions = new Map<number, TableDefinition>();
  /** Partitions of divided tables, by number. */
  readonly #partitions = new Map<
    number,
    { table: number; partition: Partition; isTarget: boolean }
  >();
  /** By ascending first table; their spans do not overlap. */
  #tenants: TenantDefinition[] = [];
  readonly #byNumber = new Map<number, TenantDefinition>();
  readonly #quotas = new Map<number, TenantQuota>();
  /** For each model, those of its tables in use. */
  readonly #rules: Map<number, TableRules>[] = [];

  /** Model of tables without a definition. */
  #defaultModel: TableModel;

  /** `holders` are the pods there are. The definitions of a server alone are never late. */
  constructor(defaultModel: TableModel, holders: () => Iterable<RowHolder>, isCluster = false) {
    this.#defaultModel = defaultModel;
    this.#holders = holders;
    this.#isCluster = isCluster;
  }

  get defaultModel(): TableModel {
    return this.#defaultModel;
  }

  set defaultModel(model: TableModel) {
    this.#defaultModel = model;
    this.#clearRules();
  }

  // ---- reads
  //

  get definitions(): Iterable<TableDefinition> {
    return this.#definitions.values();
  }

  definition(table: number): TableDefinition | undefined {
    return this.#definitions.get(table);
  }

  isDefined(table: number): boolean {
    return this.#definitions.has(table);
  }

  /** Engine of a table, or of a partition. */
  modelOf(number: number): TableModel {
    const partition = this.#partitions.get(number);
    if (partition !== undefined) return partition.partition.model as TableModel;
    return this.#definitions.get(number)?.model ?? this.#defaultModel;
  }

  /** Table of a partition; a table's own number is returned unchanged. */
  tableOf(number: number): number {
    return this.#partitions.get(number)?.table ?? number;
  }

  /** The table of each partition that has a number of its own. */
  tablesOfPartitions(): ReadonlyMap<number, number> {
    return new Map(Array.from(this.#partitions, ([number, { table }]) => [number, table]));
  }

  /** Whether the number is a table, or a partition that a definition here contains. */
  knows(number: number): boolean {
    return !isPartition(number) || this.#partitions.has(number);
  }

  mapOf(table: number): PartitionMap {
    const definition = this.#definitions.get(table);
    return definition === undefined
      ? undivided(table, this.#defaultModel)
      : partitionMapOf(definition);
  }

  /** By ascending slots. */
  partitionsOf(table: number): readonly Partition[] {
    return this.mapOf(table).partitions;
  }

  /** Whether the table's rows are stored under other numbers than its own. */
  isDivided(table: number): boolean {
    const placement = this.#definitions.get(table)?.placement;
    return placement !== undefined && placement.partitions[0]!.number !== table;
  }

  /** Owner of a table, or of a partition. */
  ownerOf(number: number): TenantDefinition | undefined {
    const table = this.tableOf(number);
    if (isLibraryTable(table)) return this.#byNumber.get(tenantOfLibraries(table));
    let low = 0;
    let high = this.#tenants.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#tenants[middle]!.firstTable <= table) low = middle + 1;
      else high = middle;
    }
    const tenant = this.#tenants[low - 1];
    return tenant !== undefined && table < tenant.firstTable + tenant.databases
      ? tenant
      : undefined;
  }

  tenant(number: number): TenantDefinition | undefined {
    return this.#byNumber.get(number);
  }

  /** The rules for a model's pod: those of its own tables, at the time of the call. */
  rulesOf(model: TableModel): TableRulesByNumber {
    const rules = new Map<number, TableRules>();
    this.#rules.push(rules);
    return {
      get: (table) => {
        const known = rules.get(table);
        if (known !== undefined || this.modelOf(table) !== model) return known;
        // Its rows are in its partitions.
        if (this.isDivided(table)) return undefined;
        const rule = this.#newRule(table);
        rules.set(table, rule);
        return rule;
      },
    };
  }

  #newRule(number: number): TableRules {
    const table = this.tableOf(number);
    const owner = this.ownerOf(table);
    if (owner === undefined || owner.state === 'dropping') return ownerlessRules;
    const definition = this.#definitions.get(table);
    const quota = this.#quotaOf(owner);
    const { partition, isTarget } = this.#partitions.get(number) ?? {};
    // Its rows are counted where they still are.
    if (isTarget !== true) quota?.add(number);
    if (definition === undefined) return quota === undefined ? noRules : { ...noRules, quota };
    return { ...rulesOf(definition, quota), isCopy: partition?.isCopy, isFilling: isTarget };
  }

  #quotaOf({
    name,
    number,
    limits,
    firstTable,
    databases,
  }: TenantDefinition): TenantQuota | undefined {
    const known = this.#quotas.get(number);
    if (known !== undefined) return known;
    if (limits.keys === 0 && limits.storedBytes === 0) return undefined;
    const quota = new TenantQuota(name, limits, this.#holders);
    for (const holder of this.#holders()) {
      for (let table = firstTable; table < firstTable + databases; table++) {
        for (const partition of this.partitionsOf(table)) {
          if (holder.tableSize(partition.number).rows > 0) quota.add(partition.number);
        }
      }
    }
    this.#quotas.set(number, quota);
    return quota;
  }

  // ---- changes

  /** One of them has changed. */
  setDefinition(definition: TableDefinition): void {
    const others = [...this.#definitions.values()].filter(({ id }) => id !== definition.id);
    this.setDefinitions([...others, definition]);
  }

  /** Divides a table as the coordinator of a change says, which may not know the table's other properties as they are now. */
  divide(definition: TableDefinition): void {
    const known = this.#definitions.get(definition.id);
    if (known === undefined) return this.setDefinition(definition);
    const before = known.placement?.change?.attempt ?? 0;
    const isLate =
      partitionMapOf(known).epoch === partitionMapOf(definition).epoch &&
      before > (definition.placement?.change?.attempt ?? 0);
    if (!isLate) this.setDefinition(dividedAs(known, definition));
  }

  /** All there are. In a cluster a table that is known to be divided in a later way stays so. */
  setDefinitions(definitions: readonly TableDefinition[]): void {
    const known = new Map(this.#definitions);
    this.#definitions.clear();
    this.#partitions.clear();
    for (const given of definitions) {
      const before = this.#isCluster ? known.get(given.id) : undefined;
      const definition = dividedAsLatest(given, before);
      this.#definitions.set(definition.id, definition);
      const { partitions = [], change } = definition.placement ?? {};
      // The targets of a change are served as soon as it is decided, which other nodes may know before this one.
      for (const partition of change?.targets ?? []) {
        this.#partitions.set(partition.number, { table: definition.id, partition, isTarget: true });
      }
      for (const partition of partitions) {
        if (partition.number === definition.id) continue;
        this.#partitions.set(partition.number, {
          table: definition.id,
          partition,
          isTarget: false,
        });
      }
    }
    this.#clearRules();
  }

  follow(update: TenancyUpdate): void {
    if (update.whole) {
      this.#tenants = [];
      this.#byNumber.clear();
      this.#clearRules();
      this.#quotas.clear();
    }
    for (const tenant of update.tenants) this.#put(tenant);
    const gone = new Set(update.gone.tenants);
    if (gone.size === 0) return;
    this.#tenants = this.#tenants.filter((tenant) => {
      if (!gone.has(tenant.name)) return true;
      this.#forgetRules(tenant);
      this.#byNumber.delete(tenant.number);
      return false;
    });
  }

  #put(tenant: TenantDefinition): void {
    const { firstTable } = tenant;
    let at = this.#tenants.length;
    // New ones come behind all others.
    while (at > 0 && this.#tenants[at - 1]!.firstTable >= firstTable) at--;
    const old = this.#tenants[at];
    const replaces = old !== undefined && old.firstTable === firstTable ? 1 : 0;
    if (old !== undefined && replaces === 1) this.#forgetRules(old);
    this.#tenants.splice(at, replaces, tenant);
    this.#byNumber.set(tenant.number, tenant);
    this.#forgetRules(tenant);
  }

  /** Its rules are made anew when they are next asked for. */
  #forgetRules({ number, firstTable, databases }: TenantDefinition): void {
    this.#quotas.delete(number);
    for (const rules of this.#rules) {
      if (rules.size === 0) continue;
      for (let n = 0; n < databases; n++) {
        for (const partition of this.partitionsOf(firstTable + n)) rules.delete(partition.number);
      }
      rules.delete(libraryTable(number));
    }
  }

  #clearRules(): void {
    for (const rules of this.#rules) rules.clear();
  }
}

/**
 * Definitions come from the metadata, which a node may hear of late, and from the coordinator of a change. By an older map commands
 * would go to groups that have the rows no more.
 */
function dividedAsLatest(
  given: TableDefinition,
  known: TableDefinition | undefined,
): TableDefinition {
  if (known === undefined || partitionMapOf(known).epoch <= partitionMapOf(given).epoch) {
    return given;
  }
  return dividedAs(given, known);
}

function dividedAs(
  definition: TableDefinition,
  { placement, model, partitions }: TableDefinition,
): TableDefinition {
  return { ...definition, placement, model, partitions };
}

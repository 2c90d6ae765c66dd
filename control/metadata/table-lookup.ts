// Which table a name or number means, and to which tenant it belongs.

import { defaultTenant } from '../../contracts/tenancy/definitions.ts';
import type { StoredTable, TableDocuments } from './table-documents.ts';
import { newDefinition, splitReference, TableError, tenantDefault } from './table-rules.ts';

/** Range of the tables of a tenant. */
interface TableOwner {
  name: string;
  firstTable: number;
  databases: number;
}

export interface TableOwners {
  /** undefined when there is no such tenant. */
  owner(tenant: string): TableOwner | undefined;
  ownerOf(table: number): TableOwner | undefined;
}

interface LookupOptions {
  /** Databases of the tenant `default`. */
  databases: number;
  owners?: TableOwners;
}

export class TableLookup {
  readonly #documents: TableDocuments;
  readonly #options: LookupOptions;

  constructor(documents: TableDocuments, options: LookupOptions) {
    this.#documents = documents;
    this.#options = options;
  }

  find(reference: string, within?: string): { owner: TableOwner; table: StoredTable } {
    const [first, rest] = splitReference(reference);
    if (within !== undefined && rest !== undefined && first !== within) {
      throw new TableError('missing', `no table ${reference} in tenant ${within}`);
    }
    const owner = this.owner(rest === undefined ? (within ?? defaultTenant) : first);
    const name = rest ?? first;
    const database = /^\d+$/.test(name) ? Number(name) : this.databaseCalled(owner, name);
    const isHere =
      database !== undefined &&
      (database < owner.databases || this.#documents.tables.has(owner.firstTable + database));
    if (isHere && this.ownerOf(owner.firstTable + database).name === owner.name) {
      return { owner, table: this.table(owner, database) };
    }
    const range = `there are databases 0 to ${owner.databases - 1}`;
    const setting = owner.name === defaultTenant ? ' (redis.databases)' : '';
    throw new TableError('missing', `no table ${reference}: ${range}${setting}`);
  }

  owner(tenant: string): TableOwner {
    const { databases, owners } = this.#options;
    if (tenant === defaultTenant) return { ...tenantDefault, databases };
    const owner = owners?.owner(tenant);
    if (owner === undefined) throw new TableError('missing', `no tenant ${tenant}`);
    return owner;
  }

  ownerOf(table: number): TableOwner {
    return this.#options.owners?.ownerOf(table) ?? this.owner(defaultTenant);
  }

  databaseCalled(owner: TableOwner, name: string): number | undefined {
    for (const { definition, tenant = defaultTenant } of this.#documents.tables.values()) {
      if (tenant === owner.name && definition.name === name) {
        return definition.id - owner.firstTable;
      }
    }
    const [, number] = /^db(\d+)$/.exec(name) ?? [];
    const database = number === undefined ? undefined : Number(number);
    const isNamedSo =
      database !== undefined && !this.#documents.tables.has(owner.firstTable + database);
    return isNamedSo ? database : undefined;
  }

  /** The stored definition, or the default. */
  table(owner: TableOwner, database: number): StoredTable {
    const id = owner.firstTable + database;
    return (
      this.#documents.tables.get(id) ?? {
        definition: newDefinition(id, database, this.#documents.defaultModel),
        explicit: false,
        ...(owner.name === defaultTenant ? {} : { tenant: owner.name }),
      }
    );
  }

  /** The tenant a table belongs to, and which of its databases it is. */
  placeOf(id: number): { tenant: string; database: number } {
    const owner = this.ownerOf(id);
    return { tenant: owner.name, database: id - owner.firstTable };
  }

  /** Name of a table in messages. */
  nameOf(id: number): string {
    const { tenant, database } = this.placeOf(id);
    return tenant === defaultTenant ? String(database) : `${tenant}/${database}`;
  }
}

// Documents of tenants in a backup: limits, users, tokens, properties of tables. Passwords and tokens are stored as
// hashes, as in the catalogs.

import type { SeriesTableCatalog } from '../../control/metadata/series-table-catalog.ts';
import type { TableCatalog } from '../../control/metadata/table-catalog.ts';
import type {
  SeriesTableDefinition,
  TableDefinition,
} from '../../control/metadata/table-definition.ts';
import type { TenantCatalog } from '../../control/tenants/tenant-catalog.ts';
import type { ChunkFile } from '../../storage-node/backup/chunk-format.ts';
import { readChunks } from '../../storage-node/backup/chunk-reader.ts';
import { ChunkWriter } from '../../storage-node/backup/chunk-writer.ts';
import { DamagedBackupError } from '../../storage-node/backup/damage.ts';
import {
  anyText,
  count,
  flag,
  listOf,
  objectOf,
  oneOf,
  optional,
  ShapeError,
  textLike,
} from '../../storage-node/backup/shape.ts';
import type { Disk } from '../../universal-row/environment.ts';
import type {
  TenantDefinition,
  TokenDefinition,
  UserDefinition,
} from '../../contracts/tenancy/definitions.ts';

interface TableDocument extends Omit<TableDefinition, 'id'> {
  /** As clients SELECT it. */
  database: number;
  explicit: boolean;
}

export interface TenantDocument {
  tenant: TenantDefinition;
  users: readonly UserDefinition[];
  tokens: readonly TokenDefinition[];
  /** Tables with properties other than the defaults. */
  tables: readonly TableDocument[];
  /** Databases of InfluxDB that have properties. Missing in a backup from before they could. */
  seriesTables?: readonly Omit<SeriesTableDefinition, 'tenant'>[];
}

export interface Catalogs {
  readonly tenants: TenantCatalog;
  readonly tables: TableCatalog;
  readonly seriesTables: SeriesTableCatalog;
}

/** Documents of one tenant, or of all that are not being dropped. */
export function tenantDocuments(
  { tenants, tables, seriesTables }: Catalogs,
  only?: string,
): TenantDocument[] {
  const chosen = only === undefined ? tenants.tenants() : [tenants.find(only)];
  const places = tables.definitions().map((definition) => {
    return { definition, ...tables.placeOf(definition.id) };
  });
  return chosen
    .filter(({ state }) => state !== 'dropping')
    .map((tenant) => ({
      tenant,
      users: tenants.users(tenant.name),
      tokens: tenants.tokens.of(tenant.name),
      tables: places
        .filter((place) => place.tenant === tenant.name)
        .map(({ database, definition: { id, ...properties } }) => {
          return { ...properties, database, explicit: tables.isExplicit(id) };
        }),
      seriesTables: seriesTables
        .definitions()
        .filter((definition) => definition.tenant === tenant.number)
        .map(({ tenant: _tenant, ...properties }) => properties),
    }));
}

/** A frame for each tenant. */
export async function writeDocuments(
  disk: Disk,
  directory: string,
  documents: readonly TenantDocument[],
): Promise<ChunkFile[]> {
  const writer = new ChunkWriter(disk, directory, 'metadata');
  try {
    for (const document of documents) await writer.add(Buffer.from(JSON.stringify(document)));
    return await writer.finish();
  } catch (error) {
    writer.abandon();
    throw error;
  }
}

export async function readDocuments(
  disk: Disk,
  directory: string,
  files: readonly ChunkFile[],
): Promise<TenantDocument[]> {
  const documents: TenantDocument[] = [];
  const frames = readChunks(disk, directory, files, mostDocumentBytes);
  for await (const { bytes, path, offset } of frames) {
    documents.push(parsed(bytes, path, offset));
  }
  return documents;
}

// Enough for a tenant with the maximum number of users and the longest rules.
const mostDocumentBytes = 256 * 1024 * 1024;

const text = anyText;
const document = objectOf({
  tenant: objectOf({
    name: text,
    number: count,
    state: oneOf('active', 'suspended', 'dropping'),
    firstTable: count,
    databases: count,
    limits: objectOf({}),
    createdAt: optional(count),
  }),
  users: listOf(
    objectOf({
      name: text,
      enabled: flag,
      open: flag,
      secrets: listOf(text),
      rules: text,
      influxAdmin: flag,
      grants: objectOf({}),
    }),
  ),
  tokens: listOf(
    objectOf({
      user: text,
      digest: textLike(/^[A-Za-z0-9+/]{43}=$/, 'a SHA-256 in base64'),
      description: text,
      createdAt: count,
    }),
  ),
  tables: listOf(objectOf({ database: count, explicit: flag, model: text })),
  seriesTables: optional(listOf(objectOf({ name: text }))),
});

function parsed(bytes: Buffer, path: string, offset: number): TenantDocument {
  try {
    if (bytes.length > mostDocumentBytes) throw new ShapeError('a tenant is too large');
    const value = JSON.parse(bytes.toString('utf8')) as TenantDocument;
    document(value, 'tenant');
    return value;
  } catch (error) {
    if (!(error instanceof ShapeError) && !(error instanceof SyntaxError)) throw error;
    throw new DamagedBackupError(path, offset, error.message);
  }
}

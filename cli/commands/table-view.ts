// Tables as text: a list with one line each, or all properties of one table.

import { seriesModel } from '../../control/metadata/table-definition.ts';
import type { TableDescription } from '../../control/metadata/tables.ts';
import { type Consistency, modelProperties } from '../../contracts/table-properties.ts';
import { type Column, grid } from '../output/grid.ts';
import { formatBytes, formatDuration, formatNumber } from '../output/values.ts';

export async function listedTables(tables: readonly TableDescription[]): Promise<string> {
  return await grid(columns, tables);
}

export async function describedTable(table: TableDescription): Promise<string> {
  return await grid(detailColumns, detailsOf(table));
}

const columns: Column<TableDescription>[] = [
  { title: 'tenant', value: ({ tenant }) => tenant },
  { title: 'database', value: ({ database }) => database, right: true },
  { title: 'name', value: ({ name }) => name },
  { title: 'model', value: modelOf },
  { title: 'rows', value: rowsOf, right: true },
  { title: 'writes', value: writesOf },
  { title: 'default ttl', value: ttlOf, right: true },
  { title: 'max row', value: maxRowOf, right: true },
  { title: 'else', value: unusualOf },
];

interface Detail {
  property: string;
  value: string;
  /** An explanation, where the value needs one. */
  note: string;
}

const detailColumns: Column<Detail>[] = [
  { title: 'property', value: ({ property }) => property },
  { title: 'value', value: ({ value }) => value },
  { title: '', value: ({ note }) => note },
];

function detailsOf(table: TableDescription): Detail[] {
  const { model, consistency, shardingKind, partitions } = table;
  const { writePriority, quotaMode, cacheBypass } = table;
  const isSeries = model === seriesModel;
  const detail = (property: string, value: string, note = ''): Detail => ({
    property,
    value,
    note,
  });
  return [
    detail('tenant', table.tenant),
    detail('database', String(table.database)),
    ...(isSeries ? [] : [detail('name', table.name)]),
    detail('model', modelOf(table), isSeries ? 'a database of InfluxDB' : ''),
    ...(isSeries ? [] : [detail('rows', rowsOf(table))]),
    detail('writes', writesOf(table)),
    detail('default ttl', ttlOf(table), isSeries ? 'of policy autogen without a duration' : ''),
    detail(isSeries ? 'max point' : 'max row', maxRowOf(table)),
    detail('consistency', consistencyText(consistency), consistencyNote(table)),
    detail('sharding', shardingKind, 'all of it is on this node'),
    detail('partitions', formatNumber(partitions), 'see polyrow partition list'),
    detail('write priority', writePriority),
    detail('quota mode', quotaMode, quotaMode === 'server' ? 'as admission.allocation says' : ''),
    detail(
      'cache bypass',
      cacheBypass ? 'yes' : 'no',
      cacheBypass && model === 'memory' ? 'no effect: all is in memory' : '',
    ),
  ];
}

/** Properties that differ from the defaults and have no column. */
function unusualOf(table: TableDescription): string {
  const usual = modelProperties(table.model);
  const { consistency, shardingKind, partitions, writePriority, quotaMode, cacheBypass } = table;
  return [
    consistency.kind === 'strong' ? '' : consistencyText(consistency),
    shardingKind === usual.shardingKind ? '' : shardingKind,
    partitions === usual.partitions ? '' : `${formatNumber(partitions)} partitions`,
    writePriority === usual.writePriority ? '' : `${writePriority} priority`,
    quotaMode === usual.quotaMode ? '' : quotaMode,
    cacheBypass ? 'no cache' : '',
  ]
    .filter((text) => text !== '')
    .join(', ');
}

function consistencyNote({ consistency, model, cacheBypass }: TableDescription): string {
  if (consistency.kind === 'strong' || consistency.kind === 'lease') return '';
  const isRemembered = model === 'kv' && !cacheBypass;
  return isRemembered ? 'answers to GET are cached' : 'there is one copy: every read is strong';
}

function consistencyText(consistency: Consistency): string {
  if (consistency.kind !== 'bounded') return consistency.kind;
  const { maxStalenessMs, maxLagEntries } = consistency;
  const time = formatDuration(maxStalenessMs * 1000);
  return `bounded: ${time}, ${formatNumber(maxLagEntries)} entries`;
}

function modelOf({ model, wantedModel }: TableDescription): string {
  return wantedModel === undefined ? model : `${model}, ${wantedModel} after a start if empty`;
}

function rowsOf({ rows, model }: TableDescription): string {
  if (rows !== undefined) return formatNumber(rows);
  return model === seriesModel ? '' : '?';
}

function writesOf({ readOnly }: TableDescription): string {
  return readOnly ? 'refused' : 'yes';
}

function ttlOf({ ttlDefaultMs: ms }: TableDescription): string {
  return ms === 0 ? 'none' : formatDuration(ms * 1000);
}

function maxRowOf({ maxRowBytes: bytes }: TableDescription): string {
  return bytes === 0 ? 'no limit' : formatBytes(bytes);
}

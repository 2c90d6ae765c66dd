// Requests for pods of time series as bytes. A request is a head and, by its kind, what is asked for.

import { WireError, type WireReader, type WireWriter } from '../../universal-row/protocol/wire.ts';
import {
  type CatalogChange,
  isAppliedState,
  type RetentionPolicyChange,
  type ScanRequest,
  type SeriesReads,
  type SeriesSelection,
  type ValueBound,
} from '../series-store.ts';
import { type CompilePattern, readFilter, writeFilter } from './filters.ts';

/** Never change a number. */
export const RequestKind = {
  write: 1,
  change: 2,
  /** As `change`, ignoring the database's properties. */
  administer: 3,
  scan: 4,
  measurements: 5,
  fieldKeys: 6,
  tagKeys: 7,
  tagValues: 8,
  seriesKeys: 9,
  seriesCardinality: 10,
  deletePoints: 11,
  dropSeries: 12,
  /** The databases, now and after each change, until it is cancelled. */
  follow: 13,
  /** The databases, as of now. */
  refresh: 14,
  /** As `refresh`, but as they are kept: without the properties in force. */
  kept: 15,
} as const;
export type RequestKind = (typeof RequestKind)[keyof typeof RequestKind];

const kinds: ReadonlySet<number> = new Set(Object.values(RequestKind));

export interface RequestHead {
  readonly kind: RequestKind;
  readonly group: number;
  readonly tenant: number;
  /** 0: not checked. */
  readonly epoch: number;
  /** Milliseconds that it has; 0 for no limit. */
  readonly deadlineMs: number;
}

export function writeHead(writer: WireWriter, head: RequestHead): void {
  writer.u8(head.kind);
  writer.varint(head.group);
  writer.varint(head.tenant);
  writer.varint(head.epoch);
  writer.varint(head.deadlineMs);
}

export function readHead(reader: WireReader): RequestHead {
  const kind = reader.u8();
  if (!kinds.has(kind)) throw new WireError(`no request is of kind ${kind}`);
  return {
    kind: kind as RequestKind,
    group: reader.varint(),
    tenant: reader.varint(),
    epoch: reader.varint(),
    deadlineMs: reader.varint(),
  };
}

// ---- how late a read may be

const readsCodes = { none: 0, strong: 1, bounded: 2 } as const;

/**
 * `group`: a session that has read a state of it needs the latest one, as this side has no copy to compare. An applied state is
 * that of a replica here.
 */
export function writeReads(
  writer: WireWriter,
  reads: SeriesReads | undefined,
  group: number,
): void {
  if (reads === undefined) writer.u8(readsCodes.none);
  else if (reads === 'strong' || isAppliedState(reads) || (reads.session?.needs(group) ?? 0) > 0) {
    writer.u8(readsCodes.strong);
  } else {
    writer.u8(readsCodes.bounded);
    writer.f64(reads.maxStalenessMs);
    writer.f64(reads.maxLagEntries);
  }
}

export function readReads(reader: WireReader): SeriesReads | undefined {
  switch (reader.u8()) {
    case readsCodes.none:
      return undefined;
    case readsCodes.strong:
      return 'strong';
    case readsCodes.bounded:
      return { maxStalenessMs: reader.f64(), maxLagEntries: reader.f64() };
    default:
      throw new WireError('a read has no consistency');
  }
}

// ---- selections

/** Bits for the optional fields that are present. */
const has = { policy: 1, measurement: 2, filter: 4, from: 8, to: 16, mark: 32 } as const;

export function writeSelection(
  writer: WireWriter,
  selection: SeriesSelection,
  group: number,
): void {
  const { database, retentionPolicy, measurement, filter, from, to, reads, mark } = selection;
  writer.string(database);
  writeReads(writer, reads, group);
  writer.u8(
    (retentionPolicy === undefined ? 0 : has.policy) |
      (measurement === undefined ? 0 : has.measurement) |
      (filter === undefined ? 0 : has.filter) |
      (from === undefined ? 0 : has.from) |
      (to === undefined ? 0 : has.to) |
      (mark === undefined ? 0 : has.mark),
  );
  if (retentionPolicy !== undefined) writer.string(retentionPolicy);
  if (measurement !== undefined) writer.string(measurement);
  if (filter !== undefined) writeFilter(writer, filter);
  if (from !== undefined) writer.i64(from);
  if (to !== undefined) writer.i64(to);
  if (mark !== undefined) writer.varint(mark);
}

export function readSelection(reader: WireReader, compile: CompilePattern): SeriesSelection {
  const database = reader.string();
  const reads = readReads(reader);
  const flags = reader.u8();
  return {
    database,
    reads,
    retentionPolicy: flags & has.policy ? reader.string() : undefined,
    measurement: flags & has.measurement ? reader.string() : undefined,
    filter: flags & has.filter ? readFilter(reader, compile) : undefined,
    from: flags & has.from ? reader.i64() : undefined,
    to: flags & has.to ? reader.i64() : undefined,
    mark: flags & has.mark ? reader.varint() : undefined,
  };
}

// ---- scans

const scanFlags = {
  descending: 1,
  filter: 2,
  summaries: 4,
  totals: 8,
  bounds: 16,
  bypasses: 32,
} as const;
const boundOps: readonly ValueBound['op'][] = ['>', '>=', '<', '<=', '='];

export function writeScan(writer: WireWriter, request: ScanRequest, group: number): void {
  const { filter, summaries, totals, bounds } = request;
  writer.string(request.database);
  writer.string(request.retentionPolicy);
  writer.string(request.measurement);
  writeReads(writer, request.reads, group);
  writer.i64(request.from);
  writer.i64(request.to);
  writeStrings(writer, request.fields);
  writer.varint(request.rowsPerSeries ?? 0);
  writer.u8(
    (request.descending ? scanFlags.descending : 0) |
      (filter ? scanFlags.filter : 0) |
      (summaries ? scanFlags.summaries : 0) |
      (totals ? scanFlags.totals : 0) |
      (bounds ? scanFlags.bounds : 0) |
      (request.bypassesCaches === true ? scanFlags.bypasses : 0),
  );
  if (filter !== undefined) writeFilter(writer, filter);
  if (summaries !== undefined) {
    writer.i64(summaries.width);
    writer.i64(summaries.offset);
  }
  if (totals !== undefined) writeStrings(writer, totals);
  if (bounds === undefined) return;
  writer.varint(bounds.length);
  for (const { field, op, value } of bounds) {
    writer.signed(field);
    writer.u8(boundOps.indexOf(op));
    writer.f64(value);
  }
}

export function readScan(reader: WireReader, compile: CompilePattern): ScanRequest {
  const database = reader.string();
  const retentionPolicy = reader.string();
  const measurement = reader.string();
  const reads = readReads(reader);
  const from = reader.i64();
  const to = reader.i64();
  const fields = readStrings(reader);
  const rowsPerSeries = reader.varint();
  const flags = reader.u8();
  return {
    database,
    retentionPolicy,
    measurement,
    reads,
    from,
    to,
    fields,
    rowsPerSeries: rowsPerSeries === 0 ? undefined : rowsPerSeries,
    descending: (flags & scanFlags.descending) !== 0,
    filter: flags & scanFlags.filter ? readFilter(reader, compile) : undefined,
    summaries:
      flags & scanFlags.summaries ? { width: reader.i64(), offset: reader.i64() } : undefined,
    totals: flags & scanFlags.totals ? readStrings(reader) : undefined,
    bounds: flags & scanFlags.bounds ? readBounds(reader) : undefined,
    bypassesCaches: (flags & scanFlags.bypasses) !== 0 || undefined,
  };
}

function readBounds(reader: WireReader): ValueBound[] {
  const bounds: ValueBound[] = [];
  const count = reader.varint();
  if (count * 10 > reader.left) throw new WireError('a message ends too early');
  for (let i = 0; i < count; i++) {
    const field = reader.signed();
    const op = boundOps[reader.u8()];
    if (op === undefined) throw new WireError('a bound has no comparison');
    bounds.push({ field, op, value: reader.f64() });
  }
  return bounds;
}

export function writeStrings(writer: WireWriter, strings: readonly string[]): void {
  writer.varint(strings.length);
  for (const text of strings) writer.string(text);
}

export function readStrings(reader: WireReader): string[] {
  const count = reader.varint();
  if (count > reader.left) throw new WireError('a message ends too early');
  const strings: string[] = [];
  for (let i = 0; i < count; i++) strings.push(reader.string());
  return strings;
}

// ---- changes of the catalog

const changeCodes = {
  createDatabase: 1,
  dropDatabase: 2,
  createRetentionPolicy: 3,
  alterRetentionPolicy: 4,
  dropRetentionPolicy: 5,
} as const satisfies Record<CatalogChange['kind'], number>;
/** Before a change that has an order. */
const orderedCode = 6;

export function writeChange(writer: WireWriter, change: CatalogChange): void {
  const { order } = change;
  if (order !== undefined) {
    writer.u8(orderedCode);
    writer.varint(order.term);
    writer.varint(order.number);
  }
  writer.u8(changeCodes[change.kind]);
  writer.string(change.database);
  switch (change.kind) {
    case 'createDatabase':
      writer.u8(change.policy === undefined ? 0 : change.policy.name === undefined ? 1 : 2);
      if (change.policy === undefined) break;
      if (change.policy.name !== undefined) writer.string(change.policy.name);
      writePolicyChange(writer, change.policy);
      break;
    case 'createRetentionPolicy':
    case 'alterRetentionPolicy':
      writer.string(change.name);
      writePolicyChange(writer, change.policy);
      break;
    case 'dropRetentionPolicy':
      writer.string(change.name);
      break;
    case 'dropDatabase':
  }
}

export function readChange(reader: WireReader): CatalogChange {
  const code = reader.u8();
  if (code !== orderedCode) return readPlainChange(reader, code);
  const order = { term: reader.varint(), number: reader.varint() };
  return { ...readPlainChange(reader, reader.u8()), order };
}

function readPlainChange(reader: WireReader, code: number): CatalogChange {
  const database = reader.string();
  switch (code) {
    case changeCodes.createDatabase: {
      const form = reader.u8();
      if (form === 0) return { kind: 'createDatabase', database };
      if (form > 2) throw new WireError('no change has such a policy');
      const name = form === 2 ? { name: reader.string() } : {};
      return {
        kind: 'createDatabase',
        database,
        policy: { ...name, ...readPolicyChange(reader) },
      };
    }
    case changeCodes.dropDatabase:
      return { kind: 'dropDatabase', database };
    case changeCodes.createRetentionPolicy:
    case changeCodes.alterRetentionPolicy: {
      const isNew = code === changeCodes.createRetentionPolicy;
      const kind = isNew ? 'createRetentionPolicy' : 'alterRetentionPolicy';
      return { kind, database, name: reader.string(), policy: readPolicyChange(reader) };
    }
    case changeCodes.dropRetentionPolicy:
      return { kind: 'dropRetentionPolicy', database, name: reader.string() };
    default:
      throw new WireError('a change is of no kind');
  }
}

const policyHas = { duration: 1, shard: 2, replicas: 4, makesDefault: 8, isDefault: 16 } as const;

function writePolicyChange(writer: WireWriter, change: RetentionPolicyChange): void {
  const { duration, shardGroupDuration, replicaN, makeDefault } = change;
  writer.u8(
    (duration === undefined ? 0 : policyHas.duration) |
      (shardGroupDuration === undefined ? 0 : policyHas.shard) |
      (replicaN === undefined ? 0 : policyHas.replicas) |
      (makeDefault === undefined ? 0 : policyHas.makesDefault) |
      (makeDefault === true ? policyHas.isDefault : 0),
  );
  if (duration !== undefined) writer.i64(duration);
  if (shardGroupDuration !== undefined) writer.i64(shardGroupDuration);
  if (replicaN !== undefined) writer.f64(replicaN);
}

function readPolicyChange(reader: WireReader): RetentionPolicyChange {
  const flags = reader.u8();
  return {
    ...(flags & policyHas.duration && { duration: reader.i64() }),
    ...(flags & policyHas.shard && { shardGroupDuration: reader.i64() }),
    ...(flags & policyHas.replicas && { replicaN: reader.f64() }),
    ...(flags & policyHas.makesDefault && { makeDefault: (flags & policyHas.isDefault) !== 0 }),
  };
}

// Encoding of the answers of time-series pods: the outcome of a request, and its result.

import {
  type FieldType,
  fieldTypeCodes,
  fieldTypes,
} from '../../universal-row/series/field-type.ts';
import { WireError, type WireReader, type WireWriter } from '../../universal-row/protocol/wire.ts';
import {
  type Database,
  DeadlineError,
  LateDeletionError,
  NotLeaderError,
  OutcomeUnknownError,
  ReadOnlyError,
  type RetentionPolicy,
  SeriesError,
  StaleEpochError,
  ThrottledError,
  TooLargeError,
  UnavailableError,
  type WriteOutcome,
} from '../series-store.ts';
import { quotaModes } from '../table-properties.ts';

/** First byte of an answer. Never change a number. */
export const Ending = {
  done: 0,
  error: 1,
  readOnly: 2,
  tooLarge: 3,
  unavailable: 4,
  notLeader: 5,
  unknown: 6,
  throttled: 7,
  deadline: 8,
  staleEpoch: 9,
  /** A failure that is none of the client's. */
  failed: 10,
  lateDeletion: 11,
} as const;

/** A bug or a broken disk at the other end. */
export class RemoteFailure extends Error {
  override readonly name = 'RemoteFailure';
}

/** Writes how it failed. */
export function writeError(writer: WireWriter, error: unknown): void {
  const [ending, number] = endingOf(error);
  writer.u8(ending);
  writer.varint(number);
  writer.string(error instanceof Error ? error.message : String(error));
}

function endingOf(error: unknown): [ending: number, number: number] {
  if (error instanceof NotLeaderError) return [Ending.notLeader, error.leader];
  if (error instanceof OutcomeUnknownError) return [Ending.unknown, error.isFinal ? 1 : 0];
  if (error instanceof ThrottledError) return [Ending.throttled, Math.ceil(error.retryMs)];
  if (error instanceof DeadlineError) return [Ending.deadline, 0];
  if (error instanceof StaleEpochError) return [Ending.staleEpoch, 0];
  if (error instanceof LateDeletionError) return [Ending.lateDeletion, error.mark];
  if (error instanceof UnavailableError) return [Ending.unavailable, 0];
  if (error instanceof ReadOnlyError) return [Ending.readOnly, 0];
  if (error instanceof TooLargeError) return [Ending.tooLarge, 0];
  if (error instanceof SeriesError) return [Ending.error, 0];
  return [Ending.failed, 0];
}

/** Behind an ending that is not `done`. */
export function readError(reader: WireReader, ending: number): Error {
  const number = reader.varint();
  const text = reader.string();
  switch (ending) {
    case Ending.error:
      return new SeriesError(text);
    case Ending.readOnly:
      return new ReadOnlyError(text);
    case Ending.tooLarge:
      return new TooLargeError(text);
    case Ending.unavailable:
      return new UnavailableError(text);
    case Ending.notLeader:
      return new NotLeaderError(number);
    case Ending.unknown:
      return new OutcomeUnknownError(number === 1);
    case Ending.throttled:
      return new ThrottledError(number, text);
    case Ending.deadline:
      return new DeadlineError();
    case Ending.staleEpoch:
      return new StaleEpochError();
    case Ending.lateDeletion:
      return new LateDeletionError(number);
    case Ending.failed:
      return new RemoteFailure(text);
    default:
      throw new WireError('an answer has no ending');
  }
}

// ---- writes

export function writeOutcome(writer: WireWriter, outcome: WriteOutcome): void {
  writer.varint(outcome.written);
  writer.varint(outcome.dropped);
  writer.varint(outcome.logBytes === undefined ? 0 : outcome.logBytes + 1);
  writer.u8(outcome.error === undefined ? 0 : 1);
  if (outcome.error !== undefined) writer.string(outcome.error);
}

export function readOutcome(reader: WireReader): WriteOutcome {
  const written = reader.varint();
  const dropped = reader.varint();
  const logBytes = reader.varint();
  const error = reader.u8() === 0 ? undefined : reader.string();
  return { written, dropped, error, ...(logBytes > 0 && { logBytes: logBytes - 1 }) };
}

// ---- types of fields

export function writeFieldType(writer: WireWriter, type: FieldType | undefined): void {
  writer.u8(type === undefined ? 255 : fieldTypeCodes[type]);
}

export function readFieldType(reader: WireReader): FieldType | undefined {
  const code = reader.u8();
  if (code === 255) return undefined;
  const type = fieldTypes[code];
  if (type === undefined) throw new WireError('a field has no type');
  return type;
}

// ---- databases

export function writeDatabase(writer: WireWriter, database: Database): void {
  const { name, retentionPolicies, defaultRetentionPolicy, isReadOnly, quotaMode } = database;
  writer.string(name);
  writer.string(defaultRetentionPolicy);
  writer.u8(isReadOnly === undefined ? 0 : isReadOnly ? 2 : 1);
  writer.u8(quotaMode === undefined ? 255 : quotaModes.indexOf(quotaMode));
  writer.varint(retentionPolicies.length);
  for (const policy of retentionPolicies) {
    writer.string(policy.name);
    writer.i64(policy.duration);
    writer.i64(policy.shardGroupDuration);
    writer.f64(policy.replicaN);
  }
}

export function readDatabase(reader: WireReader): Database {
  const name = reader.string();
  const defaultRetentionPolicy = reader.string();
  const readOnly = reader.u8();
  const quotaCode = reader.u8();
  const quotaMode = quotaModes[quotaCode];
  if (readOnly > 2 || (quotaMode === undefined && quotaCode !== 255)) {
    throw new WireError('a database has no such property');
  }
  const count = reader.varint();
  if (count > reader.left) throw new WireError('a message ends too early');
  const retentionPolicies: RetentionPolicy[] = [];
  for (let i = 0; i < count; i++) {
    retentionPolicies.push({
      name: reader.string(),
      duration: reader.i64(),
      shardGroupDuration: reader.i64(),
      replicaN: reader.f64(),
    });
  }
  return {
    name,
    retentionPolicies,
    defaultRetentionPolicy,
    ...(readOnly !== 0 && { isReadOnly: readOnly === 2 }),
    ...(quotaMode !== undefined && { quotaMode }),
  };
}

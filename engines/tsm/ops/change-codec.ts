// Rare changes are encoded as JSON: changes of the catalog, shards, the catalog as a whole.

import type { RecordBatchWriter } from '../../../universal-row/record-batch.ts';
import type { RetentionPolicyChange } from '../../../contracts/series-store.ts';
import type { StoredBatch } from '../../series-engine.ts';
import type { CatalogState, EngineChange, ShardSpan } from '../catalog.ts';
import { Op, putText, putU8, type OpReader } from './op-codec.ts';

export function putChange(into: RecordBatchWriter, change: EngineChange): void {
  putU8(into, Op.change);
  putText(
    into,
    JSON.stringify(change, (_, value: unknown) =>
      typeof value === 'bigint' ? String(value) : value,
    ),
  );
}

export function putShard(into: RecordBatchWriter, span: ShardSpan): void {
  putU8(into, Op.shard);
  putText(into, JSON.stringify(span));
}

export function putStored(into: RecordBatchWriter, batch: StoredBatch): void {
  putU8(into, Op.stored);
  putText(into, JSON.stringify(batch));
}

export function putState(into: RecordBatchWriter, state: CatalogState): void {
  putU8(into, Op.state);
  putText(into, JSON.stringify(state));
}

export function readChange(reader: OpReader): EngineChange {
  // The change was encoded above, and a checksum of the log protects it.
  const change = parsed(reader) as EngineChange;
  if (!('policy' in change) || change.policy === undefined) return change;
  return { ...change, policy: withDurations(change.policy) } as EngineChange;
}

export function readShard(reader: OpReader): ShardSpan {
  return parsed(reader) as ShardSpan;
}

export function readStored(reader: OpReader): StoredBatch {
  return parsed(reader) as StoredBatch;
}

export function readState(reader: OpReader): CatalogState {
  return parsed(reader) as CatalogState;
}

function parsed(reader: OpReader): unknown {
  const text = reader.text();
  try {
    return JSON.parse(text);
  } catch {
    return reader.damaged('not JSON');
  }
}

function withDurations(policy: RetentionPolicyChange): RetentionPolicyChange {
  const { duration, shardGroupDuration } = policy;
  return {
    ...policy,
    ...(duration === undefined ? {} : { duration: BigInt(duration) }),
    ...(shardGroupDuration === undefined ? {} : { shardGroupDuration: BigInt(shardGroupDuration) }),
  };
}

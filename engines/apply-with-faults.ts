// Applies a record batch to an engine that may have to read from disk first.

import { ReadFault } from '../universal-row/errors.ts';
import type { MaybePromise } from '../universal-row/maybe-promise.ts';
import { applyBatch } from './apply.ts';
import type { Engine } from './engine.ts';

/** As `applyBatch`, and when a read faults the batch is undone and applied again after the load. */
export function applyWithFaults(
  engine: Engine,
  buf: Buffer,
  start: number,
  end: number,
  index: number,
  group?: number,
): MaybePromise<void> {
  try {
    applyBatch(engine, buf, start, end, index, group);
    return undefined;
  } catch (error) {
    if (!(error instanceof ReadFault)) throw error;
    engine.rollback();
    return error.ready.then(() => applyWithFaults(engine, buf, start, end, index, group));
  }
}

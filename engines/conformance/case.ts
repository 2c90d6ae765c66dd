// The form of a case. Most are data: rows given, one step, and the rows there must then be.

import assert from 'node:assert/strict';
import { rowName, type EngineContents, type RowContent } from './contents.ts';
import type { Step, Supports, Trial } from './trial.ts';
import type { Verbs } from './verbs.ts';

export interface ConformanceCase {
  readonly name: string;
  /** Only for engines that declare this. */
  readonly needs?: keyof Supports;
  /** Fails by throwing. */
  run(trial: Trial): Promise<void>;
}

/** Rows of table 0 by key. */
export type RowsByKey = Record<string, RowContent>;

/** One step that writes. */
export interface WriteCase {
  name: string;
  given?: RowsByKey;
  when: Step<unknown>;
  /** Expected return value of the step. */
  answers?: unknown;
  then: RowsByKey;
}

/** One step that reads. */
export interface ReadCase {
  name: string;
  given?: RowsByKey;
  read: (verbs: Verbs) => unknown;
  answers: unknown;
}

/** Also checks that the step can be undone, and that its result is there after a reopen. */
export function writeCase({ name, given = {}, when, answers, then }: WriteCase): ConformanceCase {
  return {
    name,
    async run(trial) {
      await trial.fill(tableOf(given));
      // From here on nothing is in memory, where that makes a difference.
      if (trial.subject.supports.reopen) await trial.checkpointAndReopen();
      if (trial.subject.supports.rollback) {
        await trial.undone(when);
        await trial.check(tableOf(given));
      }
      const answer = await trial.run(when);
      if (answers !== undefined) assert.deepEqual(answer, answers);
      await trial.check(tableOf(then));
      if (trial.subject.supports.reopen) {
        await trial.checkpointAndReopen();
        await trial.check(tableOf(then));
      }
    },
  };
}

/** Also reads after a reopen, when nothing is in memory yet. */
export function readCase({ name, given = {}, read, answers }: ReadCase): ConformanceCase {
  return {
    name,
    async run(trial) {
      await trial.fill(tableOf(given));
      assert.deepEqual(await trial.read(read), answers);
      if (trial.subject.supports.reopen) {
        await trial.checkpointAndReopen();
        assert.deepEqual(await trial.read(read), answers);
      }
    },
  };
}

export function tableOf(rows: RowsByKey, table = 0): EngineContents {
  return new Map(Object.entries(rows).map(([key, content]) => [rowName(table, key), content]));
}

export function range(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i);
}

/** Text of `bytes` bytes that does not compress away and differs with the seed. */
export function noise(bytes: number, seed = 1): string {
  const out = Buffer.allocUnsafe(bytes);
  let state = seed * 2654435761 + 1;
  for (let i = 0; i < bytes; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    out[i] = state >>> 24;
  }
  return out.toString('latin1');
}

export const oneMegabyte = 1024 * 1024;

/** Each of the 256 bytes, as text of one character. */
export const everyByte: readonly string[] = range(256).map((byte) => String.fromCharCode(byte));

/** Sizes around which an engine may change a row's form. */
export const formSizes = [1, 2, 100, 129, 1000, 20_000] as const;

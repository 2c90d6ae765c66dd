// The form of a case. Most are data: the points written and the expected answers, in each state of
// the engine.

import assert from 'node:assert/strict';
import {
  type CatalogChange,
  type RetentionPolicyChange,
  SeriesError,
} from '../../contracts/series-store.ts';
import { merged, type Point, withFields } from './points.ts';
import type { SeriesTrial } from './trial.ts';
import type { ReadOptions, View } from './view.ts';

export interface SeriesCase {
  readonly name: string;
  /** Fails by throwing. */
  run(trial: SeriesTrial): Promise<void>;
}

/** Points written one batch after another, and the expected result of a scan of `m`. */
export interface StoredCase {
  name: string;
  writes: readonly (readonly Point[])[];
  /** The fields read: `v` unless told. */
  fields?: readonly string[];
  read?: ReadOptions;
  /** All that was written, merged, unless told. */
  then?: readonly Point[];
}

export function storedCase({ name, writes, fields = ['v'], read, then }: StoredCase): SeriesCase {
  return {
    name,
    async run(trial) {
      for (const points of writes) await trial.given(points);
      const expected = then ?? withFields(merged(writes.flat()), fields);
      await trial.everywhere((view) => {
        assert.deepEqual(view.read({ fields, ...read }), expected);
      });
    },
  };
}

/** Something that is asked of the same points. */
export interface AnsweredCase {
  name: string;
  given: readonly Point[];
  ask: (view: View) => unknown;
  answer: unknown;
}

export function answeredCase({ name, given, ask, answer }: AnsweredCase): SeriesCase {
  return {
    name,
    async run(trial) {
      await trial.given(given);
      await trial.everywhere((view) => assert.deepEqual(ask(view), answer));
    },
  };
}

/** Asserts that it fails as expected failures do, with this in the text. */
export function assertFails(run: () => unknown, text: RegExp): void {
  assert.throws(run, (error: unknown) => {
    assert.ok(error instanceof SeriesError, `a SeriesError, not ${String(error)}`);
    assert.match(error.message, text);
    return true;
  });
}

export function createDatabase(
  name: string,
  policy?: RetentionPolicyChange & { readonly name?: string },
): CatalogChange {
  const change = { kind: 'createDatabase', database: name } as const;
  return policy === undefined ? change : { ...change, policy };
}

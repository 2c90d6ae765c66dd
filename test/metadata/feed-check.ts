// Checks the reports of a feed against its writers' records and the log. Revisions may have gaps: a
// write without an answer is repeated at a later position, and its first position stays empty.

import assert from 'node:assert/strict';
import type { DocumentChange, DocumentWrite } from '../../control/metadata/document-store.ts';
import { changesOf, type LogRecord, revisionOf } from '../../control/metadata/mongo/layout.ts';
import type { FamilyWriter } from './families.ts';

/**
 * Every acknowledged write was told once, whole, at the revisions it was given, and each writer's in their
 * order; of those of an unknown outcome each at most once, and whole; nothing else.
 */
export function checkTold(
  told: readonly DocumentChange[],
  writers: readonly FamilyWriter[],
  where: string,
): void {
  const left = new Map<number, DocumentChange>();
  let last = 0;
  for (const change of told) {
    assert(change.revision > last, `${where}: told of ${change.revision} after ${last}`);
    last = change.revision;
    left.set(last, change);
  }
  for (const { outcomes } of writers) {
    let before = 0;
    for (const { family, version, writes, revisions } of outcomes) {
      if (revisions === undefined) continue;
      const what = `${where}: ${family} at ${version}, acknowledged as ${revisions.join()}`;
      assert(revisions[0]! > before, `${what}, after one as ${before}`);
      before = revisions.at(-1)!;
      assert.deepEqual(revisions, from(revisions[0]!, writes), what);
      assert(takeOut(left, revisions[0]!, writes), `${what}, was not told like that, or twice`);
    }
  }
  const unknown = writers.flatMap(({ outcomes }) =>
    outcomes.filter(({ revisions }) => revisions === undefined),
  );
  for (const revision of left.keys()) {
    const index = unknown.findIndex(({ writes }) => takeOut(left, revision, writes));
    assert(index >= 0, `${where}: told of ${revision}, which is of no write, or of a part of one`);
    unknown.splice(index, 1);
  }
}

/**
 * Compares with the log, as far as that is kept: a revision was left out only where its position is
 * filled by a placeholder.
 */
export function checkLog(
  told: readonly DocumentChange[],
  log: readonly LogRecord[],
  where: string,
): void {
  const end = told.at(-1)?.revision ?? 0;
  const first = log[0] === undefined ? 1 : revisionOf(log[0]._id);
  let next = first;
  const kept: DocumentChange[] = [];
  for (const record of log) {
    if (next > end) break;
    assert.equal(revisionOf(record._id), next, `${where}: a place in the log is empty`);
    assert(
      record.changes.length > 0 || record.last === next,
      `${where}: ${next} holds more than one`,
    );
    kept.push(...changesOf(record));
    next = record.last + 1;
  }
  assert(next > end, `${where}: told up to ${end}, and the log ends before ${next}`);
  assert.deepEqual(
    told.filter(({ revision }) => revision >= first),
    kept,
    where,
  );
}

/** Whether a whole write was told at a revision; if so, it is no more in `left`. */
function takeOut(
  left: Map<number, DocumentChange>,
  first: number,
  writes: readonly DocumentWrite[],
): boolean {
  const isTold = writes.every(({ collection, id, body }, i) => {
    const change = left.get(first + i);
    return (
      change?.collection === collection &&
      change.id === id &&
      JSON.stringify(change.body) === JSON.stringify(body)
    );
  });
  if (isTold) for (const revision of from(first, writes)) left.delete(revision);
  return isTold;
}

function from(first: number, writes: readonly DocumentWrite[]): number[] {
  return writes.map((_, i) => first + i);
}

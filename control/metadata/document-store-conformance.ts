// The suite that every document store passes unchanged. It needs no test framework:
//
//   for (const one of casesFor(subject)) test(one.name, () => runCase(one, subject));

import { documentCases } from './conformance/document-cases.ts';
import { feedCases } from './conformance/feed-cases.ts';
import { type StoreCase, type StoreSubject, Trial } from './conformance/trial.ts';
import { writeCases } from './conformance/write-cases.ts';

export const storeCases: readonly StoreCase[] = [...documentCases, ...writeCases, ...feedCases];

export function casesFor(subject: StoreSubject): StoreCase[] {
  return storeCases.filter(({ needs }) => needs !== 'shared' || subject.shared);
}

/** Runs one case on a new place; rejects when the store does not conform. */
export async function runCase(one: StoreCase, subject: StoreSubject): Promise<void> {
  const trial = await Trial.open(subject, one.historyLength);
  try {
    await one.run(trial);
  } finally {
    await trial.close();
  }
}

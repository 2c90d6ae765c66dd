// The conformance kit: the requirements of every engine, as a list of named cases. It needs no test
// framework; a test file runs each case over each engine:
//
//   describe.each(subjects)('$model', (subject) => {
//     test.each(casesFor(subject))('$name', (one) => runCase(one, subject));
//   });
//
// A subject declares the features of its engine; cases that need more are left out. The bounds of a
// failed case are in its message.

import { arrayCases } from './conformance/array-cases.ts';
import type { ConformanceCase } from './conformance/case.ts';
import { expiryCases } from './conformance/expiry-cases.ts';
import { fieldCases } from './conformance/field-cases.ts';
import { handleCases } from './conformance/handle-cases.ts';
import { logCases } from './conformance/log-cases.ts';
import { rangeCases } from './conformance/range-cases.ts';
import { rankedCases } from './conformance/ranked-cases.ts';
import { renameCases } from './conformance/rename-cases.ts';
import { scanCases } from './conformance/scan-cases.ts';
import { sizeCases } from './conformance/size-cases.ts';
import { snapshotCases } from './conformance/snapshot-cases.ts';
import { streamCases } from './conformance/stream-cases.ts';
import { tableCases } from './conformance/table-cases.ts';
import { Trial, type Subject } from './conformance/trial.ts';
import { valueCases } from './conformance/value-cases.ts';

export const conformanceCases: readonly ConformanceCase[] = [
  ...valueCases,
  ...renameCases,
  ...fieldCases,
  ...rankedCases,
  ...arrayCases,
  ...handleCases,
  ...rangeCases,
  ...streamCases,
  ...sizeCases,
  ...scanCases,
  ...tableCases,
  ...expiryCases,
  ...logCases,
  ...snapshotCases,
];

export function casesFor({ supports }: Subject): ConformanceCase[] {
  return conformanceCases.filter(({ needs }) => needs === undefined || supports[needs]);
}

/** Runs one case on a new engine; rejects when the engine does not conform. */
export async function runCase(one: ConformanceCase, subject: Subject): Promise<void> {
  const trial = await Trial.open(subject);
  try {
    await one.run(trial);
  } finally {
    await trial.close();
  }
}

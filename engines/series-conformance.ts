// The conformance kit for engines of time series: the requirements of each, as a list of named
// cases. It needs no test framework; a test file runs each case over each engine:
//
//   for (const one of seriesConformance(subject)) test(one.name, one.run);

import type { SeriesCase } from './series-conformance/case.ts';
import { catalogCases } from './series-conformance/catalog-cases.ts';
import { deleteCases } from './series-conformance/delete-cases.ts';
import { limitCases } from './series-conformance/limit-cases.ts';
import { logCases } from './series-conformance/log-cases.ts';
import { scanCases } from './series-conformance/scan-cases.ts';
import { schemaCases } from './series-conformance/schema-cases.ts';
import { snapshotCases } from './series-conformance/snapshot-cases.ts';
import { stabilityCases } from './series-conformance/stability-cases.ts';
import { summaryCases } from './series-conformance/summary-cases.ts';
import { SeriesTrial, type SeriesSubject } from './series-conformance/trial.ts';
import { writeCases } from './series-conformance/write-cases.ts';

export const seriesCases: readonly SeriesCase[] = [
  ...catalogCases,
  ...writeCases,
  ...scanCases,
  ...summaryCases,
  ...schemaCases,
  ...deleteCases,
  ...limitCases,
  ...logCases,
  ...snapshotCases,
  ...stabilityCases,
];

interface RunnableCase {
  readonly name: string;
  /** Runs on a new engine; rejects when the engine does not conform. */
  run: () => Promise<void>;
}

export function seriesConformance(subject: SeriesSubject): RunnableCase[] {
  return seriesCases.map((one) => ({ name: one.name, run: () => runCase(one, subject) }));
}

async function runCase(one: SeriesCase, subject: SeriesSubject): Promise<void> {
  const trial = await SeriesTrial.open(subject);
  try {
    await one.run(trial);
  } finally {
    await trial.close();
  }
}

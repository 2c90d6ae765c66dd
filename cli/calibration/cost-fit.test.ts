import { describe, expect, test } from 'vitest';
import { sizes } from '../../request-units/cost-table.ts';
import { fitColumns, priceOf, type Sample } from './cost-fit.ts';
import { Lot } from './lot.ts';
import type { PricedRequest } from './redis-load.ts';
import { fittedRowModules, rowMicrosBy } from './row-costs.ts';

const nothing: PricedRequest = {
  commands: 1,
  received: 40,
  sent: 5,
  lookups: 0,
  reads: 0,
  readBytes: 0,
  seeks: 0,
  walked: 0,
  fieldsWalked: 0,
  scoresWalked: 0,
  arrayWalked: 0,
  values: 0,
  fields: 0,
  scores: 0,
  elements: 0,
  removed: 0,
  logBytes: 0,
  misses: 0,
  scriptSteps: 0,
};

/** Requests as commands make them, in sizes. */
function requests(of: readonly number[]): PricedRequest[] {
  return of.flatMap((size) => [
    { ...nothing, received: size },
    { ...nothing, sent: size },
    { ...nothing, lookups: 1 + size / 64 },
    { ...nothing, lookups: 1, reads: 1, readBytes: size },
    { ...nothing, lookups: 1, reads: 1, readBytes: size, sent: size },
    { ...nothing, received: size, values: 1, logBytes: size },
    { ...nothing, received: size, values: 4, logBytes: size },
    { ...nothing, received: size, lookups: 1, scores: 1, logBytes: size },
    { ...nothing, received: size, lookups: 1, scores: size / 64, logBytes: size },
    { ...nothing, received: size, lookups: 1, fields: size / 64, logBytes: size },
    { ...nothing, lookups: 1, walked: size / 64, sent: size },
    { ...nothing, lookups: 1, walked: 1, sent: size },
  ]);
}

const real = Object.fromEntries(
  fittedRowModules.map((name, i) => [
    name,
    {
      cpu: sizes.map((size) =>
        ['convert', 'lookup', 'seek', 'remove'].includes(name)
          ? 0.2 + i / 20
          : 0.1 + i / 20 + size / 500,
      ),
    },
  ]),
);
const realPrice = rowMicrosBy(real);

const trained = requests([64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576]);
const tried = requests([64, 512, 2048, 32_768, 131_072, 524_288]);

function samplesOf(works: readonly PricedRequest[], noise: () => number): Sample<PricedRequest>[] {
  return works.map((work, i) => ({
    name: String(i),
    parts: [{ work, times: 1 }],
    micros: realPrice(work) * noise(),
  }));
}

function errors(samples: readonly Sample<PricedRequest>[]): number[] {
  const columns = fitColumns(fittedRowModules, rowMicrosBy, samples);
  const price = rowMicrosBy(
    Object.fromEntries(Object.entries(columns).map(([name, cpu]) => [name, { cpu }])),
  );
  return tried
    .map((work) => Math.abs(priceOf([{ work, times: 1 }], price) / realPrice(work) - 1))
    .sort((a, b) => a - b);
}

describe('costs of modules from what requests took', () => {
  test('predict requests that were not among them', () => {
    const found = errors(samplesOf(trained, () => 1));
    expect(found[found.length >> 1]).toBeLessThan(0.02);
    expect(found.at(-1)).toBeLessThan(0.15);
  });

  test('are good where measuring has its errors', () => {
    const lot = new Lot(7);
    const found = errors(samplesOf(trained, () => 0.95 + lot.below(100) / 1000));
    expect(found[found.length >> 1]).toBeLessThan(0.05);
  });

  test('are good when some of it was disturbed', () => {
    const lot = new Lot(3);
    const found = errors(samplesOf(trained, () => (lot.below(12) === 0 ? 2.5 : 1)));
    expect(found[found.length >> 1]).toBeLessThan(0.1);
  });

  test('never fall with the size, and are the same each time', () => {
    const lot = new Lot(5);
    const samples = samplesOf(trained, () => 0.7 + lot.below(600) / 1000);
    const columns = fitColumns(fittedRowModules, rowMicrosBy, samples);
    for (const [name, column] of Object.entries(columns)) {
      column.forEach((cost, i) => {
        expect(cost, name).toBeGreaterThanOrEqual(i === 0 ? 0 : column[i - 1]!);
      });
    }
    expect(fitColumns(fittedRowModules, rowMicrosBy, samples)).toEqual(columns);
  });

  test('are what is left when others are known', () => {
    const { read: _, ...others } = real;
    const samples = samplesOf(trained, () => 1).filter(({ parts }) => parts[0]!.work.reads > 0);
    const { read } = fitColumns(['read'], rowMicrosBy, samples, { known: rowMicrosBy(others) });
    read!.forEach((cost, i) => expect(cost / real['read']!.cpu[i]!).toBeCloseTo(1, 0));
  });

  test('are never less than the least, and what is left goes to others', () => {
    // No sample tells a walk from the answer that it makes.
    const samples = samplesOf(trained, () => 1).filter(({ parts }) => parts[0]!.work.walked > 0);
    const least = (module: string): number => (module === 'walk' ? 0.2 : 0.05);
    const columns = fitColumns(fittedRowModules, rowMicrosBy, samples, { least });
    for (const [name, column] of Object.entries(columns)) {
      expect(Math.min(...column), name).toBeGreaterThanOrEqual(least(name));
    }
    const price = rowMicrosBy(
      Object.fromEntries(Object.entries(columns).map(([name, cpu]) => [name, { cpu }])),
    );
    const found = samples.map(({ parts, micros }) => Math.abs(priceOf(parts, price) / micros - 1));
    expect(Math.max(...found)).toBeLessThan(0.1);
  });
});

import { expect, test } from 'vitest';
import type { SeriesStore } from '../../../../../contracts/series-store.ts';
import type { MeasurementSource } from '../../ast.ts';
import { measurementsOf, SchemaAnswers, SchemaWait } from './schema.ts';

/** A store of so many measurements, which are there at once. */
function storeOf(count: number): SeriesStore {
  const names = Array.from({ length: count }, (_, n) => `m${n}`);
  return {
    database: () => ({ retentionPolicies: [], defaultRetentionPolicy: 'autogen' }),
    *measurements() {
      yield undefined;
      return names;
    },
  } as unknown as SeriesStore;
}

/** Results of a pattern, the most names matched between two pauses, and the number of pauses. */
async function find(count: number, source: string) {
  let inARow = 0;
  let most = 0;
  let waits = 0;
  const regexp = {
    test: (name: string) => {
      most = Math.max(most, ++inARow);
      return new RegExp(source).test(name);
    },
  };
  const answers = new SchemaAnswers();
  for (;;) {
    const rounds = setInterval(() => (inARow = 0), 0);
    try {
      const from = { pattern: { source, regexp } } as unknown as MeasurementSource;
      const found = measurementsOf(from, {
        store: storeOf(count),
        database: 'd',
        retentionPolicy: '',
        answers,
      });
      return { found: found.map(({ name }) => name), most, waits };
    } catch (error) {
      if (!(error instanceof SchemaWait)) throw error;
      waits++;
      await error.here;
      inARow = 0;
    } finally {
      clearInterval(rounds);
    }
  }
}

test('a pattern of FROM is matched at once against few measurements', async () => {
  const { found, waits } = await find(1000, '^m99');
  expect(found).toHaveLength(11);
  expect(waits).toBe(0);
});

test('against very many it is matched in parts, and not again', async () => {
  const { found, most, waits } = await find(100_000, '9999$');
  expect(found).toEqual(['m9999', ...Array.from({ length: 9 }, (_, n) => `m${n + 1}9999`)]);
  expect(waits).toBe(1);
  expect(most).toBeLessThan(100_000);
});

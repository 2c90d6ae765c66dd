import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkCostTable, CostTable, rowModules, sizes } from './cost-table.ts';
import { rowCosts, rowRead, seriesRead } from './physical.ts';
import { shippedTable } from './pru-table.ts';
import { costLayout, RowPricer, type RowWorkCounts } from './row-pricer.ts';
import { SeriesPricer, SeriesWork } from './series-pricer.ts';
import { ChargeClass, Meter } from './meter.ts';

const noWork: RowWorkCounts = {
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

const { memory, kv, series } = shippedTable.models;

function pricerOf(model: 'memory' | 'kv'): RowPricer {
  return new RowPricer({ costs: shippedTable.models[model], isCached: model === 'kv' });
}

function priceOf(
  pricer: RowPricer,
  sent: number,
  work: Partial<RowWorkCounts>,
  received = 64,
): number[] {
  const cost = new Float64Array(costLayout.length);
  pricer.price(1, 1, received, sent, { ...noWork, ...work }, cost);
  return [...cost];
}

describe('the table that comes with the server', () => {
  test('can be used', () => {
    expect(() => checkCostTable(JSON.parse(JSON.stringify(shippedTable)))).not.toThrow();
  });

  test('has reading 1 kB from disk at 1 in every dimension', () => {
    const { received, sent, read } = rowRead;
    const work = { lookups: 1, reads: 1, readBytes: read, misses: 1 };
    for (const units of priceOf(pricerOf('kv'), sent, work, received)) {
      expect(units).toBeCloseTo(1, 2);
    }
  });

  test('has reading 1 kB from memory at 1, without the disk', () => {
    const { received, sent, read } = rowRead;
    const [cpu, held, io, network, lru] = priceOf(
      pricerOf('memory'),
      sent,
      { lookups: 1, reads: 1, readBytes: read },
      received,
    );
    for (const units of [cpu, held, network, lru]) expect(units).toBeCloseTo(1, 2);
    expect(io).toBe(0);
  });

  test('has a query for 1 kB of points at 1 in every dimension', () => {
    const work = new SeriesWork();
    work.received = seriesRead.received;
    work.sent = seriesRead.sent;
    work.statements = 1;
    work.textBytes = seriesRead.text;
    work.series = 1;
    work.groups = 1;
    work.blocks = 1;
    work.rows = seriesRead.points / 16;
    work.answerBytes = seriesRead.sent;
    work.held = seriesRead.held;
    const cost = new Float64Array(costLayout.length);
    new SeriesPricer(series).price(work, cost);
    for (const units of cost) expect(units).toBeCloseTo(1, 2);
  });

  test('makes what comes from a cache cheaper than what comes from disk', () => {
    const work = { lookups: 1, reads: 1, readBytes: 1024 };
    const hit = priceOf(pricerOf('kv'), 1033, work);
    const miss = priceOf(pricerOf('kv'), 1033, { ...work, misses: 1 });
    expect(hit[costLayout.io]).toBe(0);
    expect(hit[costLayout.lru]).toBeLessThan(miss[costLayout.lru]!);
    expect(hit[costLayout.lru]).toBeGreaterThanOrEqual(0.1);
  });
});

test('a line lies between two sizes, the first cost below and the last line above', () => {
  const column = sizes.map((size) => 10 + size / 64);
  const costs = {
    read1kB: [2, 1, 1, 1],
    capacity: [1, 1, 1, 1],
    modules: { one: { cpu: column } },
  } as const;
  const table = new CostTable(costs, ['one']);
  const cpu = (calls: number, bytes: number): number => table.units(0, 0, calls, bytes);
  expect(cpu(1, 0)).toBeCloseTo(11 / 2);
  expect(cpu(1, 64)).toBeCloseTo(11 / 2);
  expect(cpu(1, 96)).toBeCloseTo(11.5 / 2);
  expect(cpu(1, 2 ** 20)).toBeCloseTo((10 + 2 ** 14) / 2);
  expect(cpu(1, 2 ** 21)).toBeCloseTo((10 + 2 ** 15) / 2);
  expect(cpu(3, 3 * 96)).toBeCloseTo((3 * 11.5) / 2);
  expect(cpu(0, 1000)).toBe(0);
  expect(table.units(3, 0, 1, 1000)).toBe(0);
});

test('what is larger never costs less', () => {
  const bytes = fc.integer({ min: 0, max: 4 << 20 });
  fc.assert(
    fc.property(
      fc.constantFrom('memory' as const, 'kv' as const),
      bytes,
      bytes,
      bytes,
      fc.integer({ min: 0, max: 1000 }),
      fc.constantFrom(
        'lookups',
        'reads',
        'readBytes',
        'seeks',
        'walked',
        'fieldsWalked',
        'scoresWalked',
        'arrayWalked',
        'values',
        'fields',
        'scores',
        'elements',
        'removed',
        'logBytes',
        'misses',
      ),
      (model, received, sent, log, more, counter) => {
        const pricer = pricerOf(model);
        const work = { ...noWork, lookups: 1, reads: 1, readBytes: sent, values: 1, logBytes: log };
        const before = priceOf(pricer, sent, work, received);
        const steps = [
          priceOf(pricer, sent + more, work, received),
          priceOf(pricer, sent, work, received + more),
        ];
        // More calls of the same bytes are smaller ones: on a table that curves upwards they cost less.
        if (
          counter.endsWith('Bytes') ||
          ![
            'reads',
            'values',
            'fields',
            'scores',
            'elements',
            'misses',
            'walked',
            'fieldsWalked',
            'scoresWalked',
            'arrayWalked',
          ].includes(counter)
        ) {
          steps.push(priceOf(pricer, sent, { ...work, [counter]: work[counter] + more }, received));
        }
        for (const after of steps) {
          after.forEach((units, d) =>
            expect(units).toBeGreaterThanOrEqual(before[d]! * (1 - 1e-9)),
          );
        }
      },
    ),
  );
});

test('so many requests alike cost together what they cost one by one', () => {
  const counts = fc.integer({ min: 1, max: 500 });
  const size = fc.integer({ min: 0, max: 100_000 });
  fc.assert(
    fc.property(counts, size, size, size, (requests, received, sent, log) => {
      const pricer = pricerOf('memory');
      const one = { ...noWork, lookups: 1, reads: 1, readBytes: sent, values: 1, logBytes: log };
      const all = { ...one };
      for (const name of Object.keys(all) as (keyof typeof all)[]) all[name] *= requests;
      const together = new Float64Array(costLayout.length);
      pricer.price(requests, requests, received * requests, sent * requests, all, together);
      const alone = priceOf(pricer, sent, one, received);
      alone.forEach((units, d) => expect(together[d]! / requests).toBeCloseTo(units, 6));
    }),
  );
});

test('units of a table do not depend on how fast its machine is', () => {
  const cpu = Object.fromEntries(
    rowModules.map((name, i) => [name, sizes.map((n) => 1 + i + n / 500)]),
  );
  const slower = Object.fromEntries(
    Object.entries(cpu).map(([name, column]) => [name, column.map((micros) => micros * 2.5)]),
  );
  const work = { lookups: 2, values: 3, logBytes: 5000, walked: 7 };
  const fast = priceOf(new RowPricer({ costs: rowCosts(cpu, false), isCached: false }), 100, work);
  const slow = priceOf(
    new RowPricer({ costs: rowCosts(slower, false), isCached: false }),
    100,
    work,
  );
  expect(slow[costLayout.cpu]).toBeCloseTo(fast[costLayout.cpu]!, 2);
});

test('charges an account what was priced', () => {
  const pricer = pricerOf('memory');
  const meter = new Meter({ plane: 'redis', run: 'a' });
  const account = meter.account(1);
  const cost = new Float64Array(costLayout.length);
  const work = { ...noWork, lookups: 1, values: 1, logBytes: 200 };
  pricer.price(1, 1, 150, 5, work, cost);
  pricer.charge(account, ChargeClass.write, 2, 1, 0, 150, 5, work, cost);
  const usage = account.usage();
  expect(usage.classes.write.lru).toBe(cost[costLayout.lru]);
  expect(usage.classes.write.pru).toEqual([...cost.subarray(0, 4)]);
  expect(usage.databases[2]).toBe(usage.lru);
  expect(usage).toMatchObject({ requests: 1, bytesIn: 150, bytesOut: 5 });
});

test('merging is charged once, to whoever wrote', () => {
  const pricer = new SeriesPricer(series);
  const account = new Meter({ plane: 'influx', run: 'a' }).account(1);
  const cost = new Float64Array(costLayout.length);
  const work = new SeriesWork();
  work.logBytes = 100_000;
  work.batches = 1;
  pricer.charge(account, ChargeClass.write, false, work, cost);
  expect(account.unmergedBytes).toBe(100_000);
  pricer.chargeMerging(account);
  pricer.chargeMerging(account);
  expect(account.usage().classes.background).toMatchObject({ requests: 1 });
  expect(account.unmergedBytes).toBe(0);
});

describe('a table that cannot be used is refused', () => {
  const check = (change: (table: Record<string, unknown>) => void, what: RegExp): void => {
    const table = JSON.parse(
      JSON.stringify({ ...shippedTable, models: { memory, kv, series } }),
    ) as Record<string, unknown>;
    change(table);
    expect(() => checkCostTable(table)).toThrow(what);
  };
  type Models = Record<string, { read1kB: number[]; modules: Record<string, { cpu?: number[] }> }>;

  test('for what it is', () => {
    expect(() => checkCostTable(null)).toThrow(/no table/);
    expect(() => checkCostTable('x')).toThrow(/no table/);
  });

  test('for its format', () => check((table) => (table['format'] = 2), /format 2/));

  test('for a model that is not there', () =>
    check((table) => delete (table['models'] as Models)['kv'], /model kv/));

  test('for a module that is not there', () =>
    check((table) => delete (table['models'] as Models)['memory']!.modules['log'], /module log/));

  test('for a unit of nothing', () =>
    check((table) => ((table['models'] as Models)['memory']!.read1kB[0] = 0), /read1kB/));

  test('for costs that fall', () =>
    check((table) => {
      (table['models'] as Models)['memory']!.modules['read']!.cpu![3] = 1e9;
    }, /must not fall/));
});

import { expect, test } from 'vitest';
import { type Catalogs, purposesOf } from './purposes.ts';

const partition = (number: number, model = 'memory') => ({ number, first: 0, last: 16383, model });
const ownerOf = (table: number): number | undefined =>
  table < 4096 ? 0 : table < 4112 ? 1 : undefined;

function purposes(catalogs: Partial<Catalogs>): string[] {
  const all = purposesOf({
    tenants: [0],
    tables: [],
    defaultModel: 'memory',
    ownerOf,
    ...catalogs,
  });
  return all
    .map(({ tenant, model, partition: number, series }) => {
      const part = series && `${series.partition} of ${series.of}`;
      return [tenant, model, number, part].filter((word) => word !== undefined).join(' ');
    })
    .sort();
}

test.each<[string, Partial<Catalogs>, string[]]>([
  ['a tenant has one for rows and one for time series', {}, ['0 memory', '0 tsm']],
  [
    'and one for each partition of divided time series',
    { tenants: [0, 1], seriesPartitions: 2 },
    ['0 memory', '0 tsm 0 of 2', '0 tsm 1 of 2', '1 memory', '1 tsm 0 of 2', '1 tsm 1 of 2'],
  ],
  ['the default model counts', { defaultModel: 'kv' }, ['0 kv', '0 tsm']],
  [
    'each model that a table of the tenant has',
    {
      tenants: [0, 1],
      tables: [
        { id: 1, model: 'kv' },
        { id: 2, model: 'kv' },
        { id: 4100, model: 'memory' },
      ],
    },
    ['0 kv', '0 memory', '0 tsm', '1 memory', '1 tsm'],
  ],
  [
    'each partition, also those that are being filled',
    {
      tables: [
        {
          id: 3,
          model: 'memory',
          placement: {
            epoch: 2,
            partitions: [partition(0x4000_0000), partition(0x4000_0001, 'kv')],
            change: { sources: [0x4000_0000], targets: [partition(0x4000_0002)] },
          },
        },
      ],
    },
    ['0 kv 1073741825', '0 memory', '0 memory 1073741824', '0 memory 1073741826', '0 tsm'],
  ],
  [
    'the undivided table that is being divided',
    {
      defaultModel: 'kv',
      tables: [
        {
          id: 3,
          model: 'memory',
          placement: {
            epoch: 1,
            partitions: [partition(3)],
            change: { sources: [3], targets: [partition(0x4000_0002)] },
          },
        },
      ],
    },
    ['0 kv', '0 memory', '0 memory 1073741826', '0 tsm'],
  ],
  [
    "none for a table that is nobody's",
    { tables: [{ id: 9000, model: 'kv' }] },
    ['0 memory', '0 tsm'],
  ],
])('%s', (_, catalogs, expected) => expect(purposes(catalogs)).toEqual(expected));

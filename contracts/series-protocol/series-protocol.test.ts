import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { WireError, WireReader, WireWriter } from '../../universal-row/protocol/wire.ts';
import type {
  CatalogChange,
  Database,
  ScanRequest,
  SeriesFilter,
  SeriesSelection,
} from '../series-store.ts';
import { readDatabase, readError, readOutcome, writeDatabase, writeOutcome } from './answers.ts';
import { readFilter, writeFilter } from './filters.ts';
import {
  readChange,
  readHead,
  readScan,
  readSelection,
  RequestKind,
  writeChange,
  writeHead,
  writeScan,
  writeSelection,
} from './requests.ts';

const matches = (source: string) => (value: string) => value.includes(source);
const group = 17;

const anyText = fc.string({ unit: 'grapheme', maxLength: 12 });
const any64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const maybe = <T>(one: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.option(one, { nil: undefined });

const { anyFilter } = fc.letrec<{ anyFilter: SeriesFilter }>((tie) => ({
  anyFilter: fc.oneof(
    { maxDepth: 5 },
    fc.record({ kind: fc.constantFrom('equal', 'notEqual'), tag: anyText, value: anyText }),
    fc.record({
      kind: fc.constantFrom('match', 'notMatch'),
      tag: anyText,
      pattern: anyText,
      matches: fc.constant(() => true),
    }),
    fc.record({
      kind: fc.constantFrom('and', 'or'),
      terms: fc.array(tie('anyFilter'), { maxLength: 4 }),
    }),
  ) as fc.Arbitrary<SeriesFilter>,
}));

const anyReads = fc.oneof(
  fc.constant(undefined),
  fc.constant('strong' as const),
  fc.record({
    maxStalenessMs: fc.constantFrom(0, 12.5, Infinity),
    maxLagEntries: fc.constantFrom(0, 7, Infinity),
  }),
);

const anyScan: fc.Arbitrary<ScanRequest> = fc.record({
  database: anyText,
  retentionPolicy: anyText,
  measurement: anyText,
  reads: anyReads,
  filter: maybe(anyFilter),
  from: any64,
  to: any64,
  fields: fc.array(anyText, { maxLength: 5 }),
  descending: fc.boolean(),
  summaries: maybe(fc.record({ width: any64, offset: any64 })),
  totals: maybe(fc.array(anyText, { maxLength: 3 })),
  rowsPerSeries: maybe(fc.integer({ min: 1 })),
  bounds: maybe(
    fc.array(
      fc.record({
        field: fc.integer({ min: -1, max: 9 }),
        op: fc.constantFrom('>', '>=', '<', '<=', '='),
        value: fc.double(),
      }),
      { maxLength: 3 },
    ),
  ),
  bypassesCaches: maybe(fc.constant(true)),
});

const anySelection = fc.record({
  database: anyText,
  reads: anyReads,
  retentionPolicy: maybe(anyText),
  measurement: maybe(anyText),
  filter: maybe(anyFilter),
  from: maybe(any64),
  to: maybe(any64),
  mark: maybe(fc.nat()),
});

const anyPolicy = fc.record(
  {
    duration: any64,
    shardGroupDuration: any64,
    replicaN: fc.nat(),
    makeDefault: fc.boolean(),
  },
  { requiredKeys: [] },
);
const anyPlainChange = fc.oneof(
  fc.record({ kind: fc.constant('createDatabase'), database: anyText }),
  fc.tuple(anyText, anyPolicy, maybe(anyText)).map(([database, policy, name]) => ({
    kind: 'createDatabase',
    database,
    policy: name === undefined ? policy : { ...policy, name },
  })),
  fc.record({ kind: fc.constant('dropDatabase'), database: anyText }),
  fc.record({
    kind: fc.constantFrom('createRetentionPolicy', 'alterRetentionPolicy'),
    database: anyText,
    name: anyText,
    policy: anyPolicy,
  }),
  fc.record({ kind: fc.constant('dropRetentionPolicy'), database: anyText, name: anyText }),
) as fc.Arbitrary<CatalogChange>;
const anyOrder = fc.record({ term: fc.nat(), number: fc.nat() });
const anyChange = fc
  .tuple(anyPlainChange, maybe(anyOrder))
  .map(([change, order]) => (order === undefined ? change : { ...change, order }));

const anyDatabase = fc.record(
  {
    name: anyText,
    defaultRetentionPolicy: anyText,
    retentionPolicies: fc.array(
      fc.record({
        name: anyText,
        duration: any64,
        shardGroupDuration: any64,
        replicaN: fc.nat(),
      }),
      { maxLength: 3 },
    ),
    isReadOnly: fc.boolean(),
    quotaMode: fc.constantFrom('server', 'hard', 'stacked'),
  },
  { requiredKeys: ['name', 'defaultRetentionPolicy', 'retentionPolicies'] },
) as fc.Arbitrary<Database>;

/** Without functions. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, one]) => typeof one !== 'function')
      .map(([key, one]) => [key, plain(one)]),
  );
}

interface Form<T> {
  readonly name: string;
  readonly any: fc.Arbitrary<T>;
  readonly write: (writer: WireWriter, value: T) => void;
  readonly read: (reader: WireReader) => unknown;
}

const forms = [
  {
    name: 'a filter',
    any: anyFilter,
    write: writeFilter,
    read: (reader) => readFilter(reader, matches),
  } satisfies Form<SeriesFilter>,
  {
    name: 'a scan',
    any: anyScan,
    write: (writer, scan) => writeScan(writer, scan, group),
    read: (reader) => readScan(reader, matches),
  } satisfies Form<ScanRequest>,
  {
    name: 'a selection',
    any: anySelection,
    write: (writer, selection) => writeSelection(writer, selection, group),
    read: (reader) => readSelection(reader, matches),
  } satisfies Form<SeriesSelection>,
  { name: 'a change', any: anyChange, write: writeChange, read: readChange },
  { name: 'a database', any: anyDatabase, write: writeDatabase, read: readDatabase },
  {
    name: 'a head',
    any: fc.record({
      kind: fc.constantFrom(...Object.values(RequestKind)),
      group: fc.maxSafeNat(),
      tenant: fc.maxSafeNat(),
      epoch: fc.maxSafeNat(),
      deadlineMs: fc.nat(),
    }),
    write: writeHead,
    read: readHead,
  },
  {
    name: 'an outcome',
    any: fc.record(
      {
        written: fc.nat(),
        dropped: fc.nat(),
        error: maybe(anyText),
        logBytes: fc.nat(),
      },
      { requiredKeys: ['written', 'dropped', 'error'] },
    ),
    write: writeOutcome,
    read: readOutcome,
  },
] as unknown as Form<unknown>[];

describe.each(forms)('$name', ({ any, write, read }) => {
  const bytesOf = (value: unknown): Buffer => {
    const writer = new WireWriter();
    write(writer, value);
    return Buffer.from(writer.view());
  };

  test('arrives as it was sent', () => {
    fc.assert(
      fc.property(any, (value) => {
        const reader = new WireReader(bytesOf(value));
        expect(plain(read(reader))).toEqual(plain(value));
        reader.done();
      }),
    );
  });

  test('is refused when it is damaged, or is another one', () => {
    const anyDamage = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 4 });
    fc.assert(
      fc.property(any, anyDamage, fc.nat(), (value, damage, cut) => {
        const bytes = bytesOf(value);
        for (const [at, by] of damage) bytes[at % bytes.length]! ^= by;
        const end = damage.length === 0 ? cut % bytes.length : bytes.length;
        try {
          read(new WireReader(bytes.subarray(0, end)));
        } catch (error) {
          expect(error).toBeInstanceOf(WireError);
        }
      }),
    );
  });
});

test('a pattern is compiled again', () => {
  const writer = new WireWriter();
  writeFilter(writer, { kind: 'match', tag: 't', pattern: 'abc', matches: () => false });
  const filter = readFilter(new WireReader(writer.view()), matches);
  expect(filter.kind === 'match' && filter.matches('xabcx')).toBe(true);
});

test('a filter that is nested without end is refused', () => {
  const nested = Buffer.alloc(1_000_000, Buffer.from([1, 1]));
  expect(() => readFilter(new WireReader(nested), matches)).toThrow(/nested too deeply/);
});

test('an unknown ending is refused', () => {
  const writer = new WireWriter();
  writer.varint(0);
  writer.string('');
  expect(() => readError(new WireReader(writer.view()), 77)).toThrow(WireError);
});

test('a session that has read the group asks for the latest state', () => {
  const writer = new WireWriter();
  const session = { needs: () => 12, saw: () => {}, moved: () => {} };
  const reads = { maxStalenessMs: 1, maxLagEntries: 1, session };
  writeSelection(writer, { database: 'db', reads }, group);
  expect(readSelection(new WireReader(writer.view()), matches).reads).toBe('strong');
});

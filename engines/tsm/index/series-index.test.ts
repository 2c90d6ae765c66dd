import { inOneGo } from '../../../universal-row/slices.ts';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { keyedHash } from '../../../universal-row/keyed-hash.ts';
import { decodeSeriesKey, encodeSeriesKey } from '../../../universal-row/series/series-key.ts';
import type { SeriesFilter } from '../../../contracts/series-store.ts';
import { MemoryDisk } from '../../memory/testing/memory-disk.ts';
import { CorruptFileError, type SeriesIndex } from '../parts.ts';
import { firstFrameAt, indexFileName } from './index-file.ts';
import { openSeriesIndex } from './series-index.ts';
import { NaiveIndex } from './testing/naive-index.ts';

const directory = 'shard';
const path = `${directory}/${indexFileName}`;

function key(measurement: string, tags: Record<string, string>): string {
  const sorted = Object.entries(tags).sort(([a], [b]) =>
    Buffer.compare(Buffer.from(a), Buffer.from(b)),
  );
  return encodeSeriesKey({ measurement, tags: sorted }).toString();
}

/** As the engine does: finds the series, or adds it. */
function ensure(index: SeriesIndex, text: string): number {
  // Not at the start of its buffer, nor up to its end.
  const keys = Buffer.from(`..${text},`);
  const hash = keyedHash(keys, 2, keys.length - 1);
  const known = index.findSeries(keys, 2, keys.length - 1, hash);
  return known >= 0 ? known : index.addSeries(keys, 2, keys.length - 1);
}

function find(index: SeriesIndex, text: string): number {
  const keys = Buffer.from(text);
  return index.findSeries(keys, 0, keys.length, keyedHash(keys, 0, keys.length));
}

const keysOf = (index: SeriesIndex, filter?: SeriesFilter) =>
  [...inOneGo(index.select(0, filter))].map((series) => index.key(series));

const equal = (tag: string, value: string): SeriesFilter => ({ kind: 'equal', tag, value });
const match = (tag: string, pattern: string): SeriesFilter => ({
  kind: 'match',
  tag,
  pattern,
  matches: (value) => new RegExp(pattern).test(value),
});

describe('a series index', () => {
  test('numbers series, and finds them by key', () => {
    const index = openSeriesIndex(new MemoryDisk(), directory);
    expect(ensure(index, 'cpu,host=a')).toBe(0);
    expect(ensure(index, 'mem,host=a')).toBe(1);
    expect(ensure(index, 'cpu,host=a')).toBe(0);
    expect(ensure(index, 'cpu')).toBe(2);
    expect(find(index, 'cpu,host=')).toBe(-1);
    expect(find(index, 'cpu,host=ab')).toBe(-1);
    expect(find(index, 'cpu,hos=a')).toBe(-1);
    expect(index.findMeasurement('mem')).toBe(1);
    expect(index.findMeasurement('me')).toBe(-1);
    expect([0, 1, 2].map((series) => index.measurementOf(series))).toEqual([0, 1, 0]);
    expect(index.key(1)).toBe('mem,host=a');
    expect(index.seriesCount).toBe(3);
  });

  test('takes a key apart as everybody else does, wherever its backslashes are', () => {
    const part = fc
      .array(fc.constantFrom('a', 'é', '\\,', '\\\\,', '\\\\\\=', '\\=', '\\ ', '\\a'), {
        minLength: 1,
      })
      .map((pieces) => `x${pieces.join('')}`)
      // At its end it would escape what separates the parts.
      .filter((text) => !text.endsWith('\\'));
    const keys = fc.record({ measurement: part, tags: fc.dictionary(part, part, { maxKeys: 3 }) });
    fc.assert(
      fc.property(fc.array(keys, { minLength: 1, maxLength: 5 }), (all) => {
        const index = openSeriesIndex(new MemoryDisk(), directory);
        for (const { measurement, tags } of all) {
          const pairs = Object.entries(tags).map(([tag, value]) => `,${tag}=${value}`);
          const text = measurement + pairs.join('');
          const series = ensure(index, text);
          const bytes = Buffer.from(text);
          const name = decodeSeriesKey(bytes, 0, bytes.length);
          expect(index.key(series)).toBe(text);
          expect(find(index, text)).toBe(series);
          const number = index.measurementOf(series);
          expect(index.measurementName(number)).toBe(name.measurement);
          for (const [tag, value] of name.tags) {
            expect(inOneGo(index.tagKeys(number, undefined))).toContain(tag);
            expect(inOneGo(index.tagValues(number, tag, undefined))).toContain(value);
          }
        }
      }),
    );
  });

  test('gives a removed key a new number, and lists the old one nowhere', () => {
    const index = openSeriesIndex(new MemoryDisk(), directory);
    ensure(index, 'cpu,host=a');
    ensure(index, 'cpu,host=b,only=here');
    index.removeSeries(1);
    expect(index.isRemoved(1)).toBe(true);
    expect(find(index, 'cpu,host=b,only=here')).toBe(-1);
    expect(keysOf(index)).toEqual(['cpu,host=a']);
    expect(inOneGo(index.tagKeys(0, undefined))).toEqual(['host']);
    expect(inOneGo(index.tagValues(0, 'host', undefined))).toEqual(['a']);
    expect(index.tagValueCount(0, 'host')).toBe(1);
    expect(index.liveSeriesOf(0)).toBe(1);
    expect(ensure(index, 'cpu,host=b')).toBe(2);
    expect(index.tagValueCount(0, 'host')).toBe(2);
    expect(keysOf(index, equal('only', ''))).toEqual(['cpu,host=a', 'cpu,host=b']);
  });

  test('takes a missing tag for an empty one', () => {
    const index = openSeriesIndex(new MemoryDisk(), directory);
    for (const text of ['cpu', 'cpu,host=a', 'cpu,host=b,os=x']) ensure(index, text);
    const check = (filter: SeriesFilter, expected: string[]) =>
      expect(keysOf(index, filter)).toEqual(expected);
    check(equal('os', ''), ['cpu', 'cpu,host=a']);
    check(equal('nosuch', ''), ['cpu', 'cpu,host=a', 'cpu,host=b,os=x']);
    check(equal('nosuch', 'x'), []);
    check({ kind: 'notEqual', tag: 'host', value: 'a' }, ['cpu', 'cpu,host=b,os=x']);
    check(match('host', '^$'), ['cpu']);
    check(match('nosuch', '^$'), ['cpu', 'cpu,host=a', 'cpu,host=b,os=x']);
    check({ ...match('os', 'x'), kind: 'notMatch' } as SeriesFilter, ['cpu', 'cpu,host=a']);
    expect(index.tagValue(2, 'os')).toBe('x');
    expect(index.tagValue(1, 'os')).toBe('');
    expect(index.tagValue(1, 'nosuch')).toBe('');
  });

  test('keeps fields with their types, and measurements without series', () => {
    const disk = new MemoryDisk();
    const index = openSeriesIndex(disk, directory);
    const cpu = index.addMeasurement('c p,u');
    expect(index.addField(cpu, 'usage idle', 'float').number).toBe(0);
    expect(index.addField(cpu, 'n', 'unsigned').number).toBe(1);
    index.persist();
    index.close();
    const again = openSeriesIndex(disk, directory);
    expect(again.findMeasurement('c p,u')).toBe(cpu);
    expect(again.measurementName(cpu)).toBe('c p,u');
    expect(again.fields(cpu)).toEqual([
      { number: 0, name: 'usage idle', type: 'float' },
      { number: 1, name: 'n', type: 'unsigned' },
    ]);
    expect(again.findField(cpu, 'n')?.type).toBe('unsigned');
    expect(again.findField(cpu, 'm')).toBeUndefined();
  });

  test('sorts by the bytes of keys, where values are each other’s beginnings', () => {
    const index = openSeriesIndex(new MemoryDisk(), directory);
    const values = ['a', 'a!', 'a-', 'a b', 'a,b', 'é', '\uffff', '\u{1f600}', 'aa', 'b', '!'];
    const expected: string[] = [];
    for (const x of values) {
      for (const y of values) expected.push(key('m', { x, y }), key('m', { 'x!': x, y }));
      expected.push(key('m', { x }), key('m', { y: x }));
    }
    for (const text of expected) ensure(index, text);
    expected.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    expect(keysOf(index)).toEqual(expected);
    for (let i = 1; i < expected.length; i++) {
      const [a, b] = [find(index, expected[i - 1]!), find(index, expected[i]!)];
      expect(index.compareKeys(a, b)).toBeLessThan(0);
      expect(index.compareKeys(b, a)).toBeGreaterThan(0);
    }
  });
});

describe('against Maps', () => {
  const measurement = fc.constantFrom('cpu', 'm,e m', 'é');
  const tagName = fc.constantFrom('host', 'a', 'a b', 'z=z', 'ü');
  const tagValue = fc.constantFrom('a', 'a!', 'a,b', 'b', 'ü', '0', '1', '\u{1f600}', 'x\\y');
  const seriesKey = fc
    .tuple(measurement, fc.dictionary(tagName, tagValue, { maxKeys: 4, noNullPrototype: true }))
    .map(([name, tags]) => key(name, tags));
  const { filter } = fc.letrec<{ filter: SeriesFilter }>((tie) => ({
    filter: fc.oneof(
      { maxDepth: 3 },
      fc.record({
        kind: fc.constantFrom('equal' as const, 'notEqual' as const),
        tag: fc.oneof(tagName, fc.constant('none')),
        value: fc.oneof(tagValue, fc.constantFrom('', 'nobody')),
      }),
      fc
        .tuple(tagName, fc.constantFrom('a', '^$', '^[ab]', '.'), fc.boolean())
        .map(([tag, pattern, positive]) => ({
          ...match(tag, pattern),
          kind: positive ? 'match' : 'notMatch',
        })) as fc.Arbitrary<SeriesFilter>,
      fc.record({
        kind: fc.constantFrom('and' as const, 'or' as const),
        terms: fc.array(tie('filter'), { maxLength: 3 }),
      }),
    ),
  }));
  const operation = fc.oneof(
    { weight: 12, arbitrary: seriesKey.map((text) => ({ kind: 'add' as const, text })) },
    { weight: 2, arbitrary: fc.nat().map((pick) => ({ kind: 'remove' as const, pick })) },
    { weight: 1, arbitrary: fc.constant({ kind: 'reopen' as const }) },
    { weight: 1, arbitrary: fc.constant({ kind: 'persist' as const }) },
    { weight: 1, arbitrary: fc.constant({ kind: 'crash' as const }) },
    {
      weight: 5,
      arbitrary: fc
        .tuple(measurement, fc.option(filter, { nil: undefined }), tagName)
        .map(([name, wanted, tag]) => ({ kind: 'ask' as const, name, wanted, tag })),
    },
  );

  test('answers as they do, whatever was added, removed and reopened before', () => {
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 120, size: 'max' }), (operations) => {
        const disk = new MemoryDisk();
        let naive = new NaiveIndex();
        let persisted = naive.copy();
        let index = openSeriesIndex(disk, directory);
        for (const op of operations) {
          if (op.kind === 'add') {
            const known = naive.find(op.text);
            expect(find(index, op.text)).toBe(known);
            if (known < 0) expect(ensure(index, op.text)).toBe(naive.add(op.text));
          } else if (op.kind === 'remove') {
            if (naive.series.length === 0) continue;
            const series = op.pick % naive.series.length;
            naive.series[series]!.removed = true;
            index.removeSeries(series);
          } else if (op.kind === 'reopen') {
            index.persist();
            index.close();
            index = openSeriesIndex(disk, directory);
            persisted = naive.copy();
          } else if (op.kind === 'persist') {
            index.persist();
            persisted = naive.copy();
          } else if (op.kind === 'crash') {
            index = openSeriesIndex(disk, directory);
            naive = persisted.copy();
          } else {
            const number = index.findMeasurement(op.name);
            expect(number).toBe(naive.measurements.indexOf(op.name));
            if (number < 0) continue;
            const expected = naive.select(op.name, op.wanted);
            expect([...inOneGo(index.select(number, op.wanted))]).toEqual(expected);
            expect(inOneGo(index.tagKeys(number, op.wanted))).toEqual(
              naive.tagKeys(op.name, op.wanted),
            );
            const values = naive.tagValues(op.name, op.tag, op.wanted);
            expect(inOneGo(index.tagValues(number, op.tag, op.wanted))).toEqual(values);
            const all = naive.tagValues(op.name, op.tag, undefined);
            expect(index.tagValueCount(number, op.tag)).toBe(all.length);
            for (const value of [...all, 'nosuch']) {
              expect(index.hasTagValue(number, op.tag, value)).toBe(all.includes(value));
            }
            for (const series of expected) {
              const about = naive.series[series]!;
              expect(index.key(series)).toBe(about.key);
              expect(index.keyLength(series)).toBe(Buffer.byteLength(about.key));
              expect(index.tagValue(series, op.tag)).toBe(about.tags.get(op.tag) ?? '');
            }
          }
        }
        expect(index.seriesCount).toBe(naive.series.length);
        naive.series.forEach((series, n) => expect(index.isRemoved(n)).toBe(series.removed));
      }),
      { numRuns: 300 },
    );
  });

  test('answers as they do with many series, by postings, sparse columns and merged orders', () => {
    const naive = new NaiveIndex();
    const disk = new MemoryDisk();
    let index = openSeriesIndex(disk, directory);
    const add = (from: number, to: number) => {
      for (let n = from; n < to; n++) {
        const tags: Record<string, string> = { host: `host_${(n * 7919) % 5003}`, n: `${n % 3}` };
        if (n % 500 === 7) tags['rare'] = `r${n % 11}`;
        if (n % 97 === 0) tags['late'] = `${n}`;
        const text = key('cpu', tags);
        if (naive.find(text) >= 0) continue;
        expect(ensure(index, text)).toBe(naive.add(text));
      }
    };
    const host = (n: number) => equal('host', `host_${n}`);
    const filters: (SeriesFilter | undefined)[] = [
      undefined,
      host(17),
      { kind: 'or', terms: [host(17), host(4000), equal('rare', 'r3'), host(17)] },
      { kind: 'and', terms: [match('host', '^host_1.0$'), equal('n', '1')] },
      { kind: 'or', terms: [{ kind: 'and', terms: [host(5), equal('n', '1')] }, equal('n', '2')] },
      { kind: 'and', terms: [equal('rare', 'r4'), { kind: 'notEqual', tag: 'n', value: '0' }] },
      { kind: 'notEqual', tag: 'rare', value: '' },
      equal('rare', ''),
      { kind: 'and', terms: [host(5), host(6)] },
      match('late', '^9'),
    ];
    const check = () => {
      naive.series.forEach(({ key: text, removed }, series) => {
        const found = find(index, text);
        if (removed) expect(found).not.toBe(series);
        else expect(found).toBe(series);
      });
      for (const filter of filters) {
        expect([...inOneGo(index.select(0, filter))]).toEqual(naive.select('cpu', filter));
      }
      expect(inOneGo(index.tagValues(0, 'host', undefined))).toEqual(
        naive.tagValues('cpu', 'host', undefined),
      );
      expect(inOneGo(index.tagKeys(0, filters[5]))).toEqual(naive.tagKeys('cpu', filters[5]));
    };
    add(0, 3000);
    check();
    add(3000, 3100);
    check();
    for (let series = 0; series < 3000; series += 13) {
      index.removeSeries(series);
      naive.series[series]!.removed = true;
    }
    check();
    add(3100, 4500);
    check();
    index.persist();
    index = openSeriesIndex(disk, directory);
    check();
    add(4500, 4600);
    check();
  });
});

describe('on disk', () => {
  /** An index with two persists; what the file was after each. */
  function twice(): { first: Buffer; second: Buffer; keys: string[] } {
    const disk = new MemoryDisk();
    const index = openSeriesIndex(disk, directory);
    const keys: string[] = [];
    const add = (n: number) => {
      keys.push(`cpu,host=h${n},os=linux`);
      ensure(index, keys.at(-1)!);
    };
    for (let n = 0; n < 6; n++) add(n);
    index.addField(0, 'usage', 'float');
    index.persist();
    const first = Buffer.from(disk.files.get(path)!);
    for (let n = 6; n < 12; n++) add(n);
    index.removeSeries(1);
    index.persist();
    return { first, second: Buffer.from(disk.files.get(path)!), keys };
  }

  function reopened(file: Buffer): SeriesIndex {
    const disk = new MemoryDisk();
    disk.files.set(path, Buffer.from(file));
    return openSeriesIndex(disk, directory);
  }

  test('a tail torn before it was synced is cut, and written again', () => {
    const { first, second, keys } = twice();
    for (let length = first.length; length <= second.length; length++) {
      // The mark of the second persist was not written yet.
      const disk = new MemoryDisk();
      const torn = Buffer.from(second.subarray(0, length));
      first.copy(torn, 0, 0, firstFrameAt);
      disk.files.set(path, torn);
      let index = openSeriesIndex(disk, directory);
      const whole = length === second.length;
      expect(index.seriesCount).toBe(whole ? 12 : 6);
      expect(index.isRemoved(1)).toBe(whole);
      for (let n = 2; n < 12; n++) expect(ensure(index, keys[n]!)).toBe(n);
      index.persist();
      index = openSeriesIndex(disk, directory);
      for (let n = 2; n < 12; n++) expect(find(index, keys[n]!)).toBe(n);
    }
  });

  test('a tail of zeros or of other bytes is cut', () => {
    const { first } = twice();
    for (const fill of [0, 1, 255]) {
      const index = reopened(Buffer.concat([first, Buffer.alloc(100, fill)]));
      expect(index.seriesCount).toBe(6);
    }
  });

  test('a file shorter than what was synced is damaged', () => {
    const { second } = twice();
    for (let length = 0; length < second.length; length++) {
      expect(() => reopened(second.subarray(0, length))).toThrow(CorruptFileError);
    }
  });

  test('no bit can change without being noticed, but for those of a mark', () => {
    const { second, keys } = twice();
    for (let bit = 0; bit < second.length * 8; bit++) {
      const flipped = Buffer.from(second);
      flipped[bit >>> 3]! ^= 1 << (bit & 7);
      if (bit >>> 3 < 16 || bit >>> 3 >= firstFrameAt) {
        expect(() => reopened(flipped)).toThrow(CorruptFileError);
      } else {
        const index = reopened(flipped);
        expect(keysOf(index)).toEqual(keys.filter((_, n) => n !== 1).sort());
      }
    }
  });

  test('nothing of a new index is seen until it is whole', () => {
    const disk = new MemoryDisk();
    const index = openSeriesIndex(disk, directory);
    ensure(index, 'cpu,host=a');
    disk.nextFailure = new Error('disk full');
    expect(() => index.persist()).toThrow('disk full');
    expect(openSeriesIndex(disk, directory).seriesCount).toBe(0);
    index.persist();
    expect(openSeriesIndex(disk, directory).seriesCount).toBe(1);
  });

  test('what a failed persist left out the next one writes', () => {
    const disk = new MemoryDisk();
    const index = openSeriesIndex(disk, directory);
    ensure(index, 'cpu,host=a');
    index.persist();
    ensure(index, 'cpu,host=b');
    disk.nextFailure = new Error('disk full');
    expect(() => index.persist()).toThrow('disk full');
    ensure(index, 'cpu,host=c');
    index.persist();
    expect(keysOf(openSeriesIndex(disk, directory))).toEqual([
      'cpu,host=a',
      'cpu,host=b',
      'cpu,host=c',
    ]);
  });

  test('a long key fits, in memory and in a frame', () => {
    const disk = new MemoryDisk();
    const index = openSeriesIndex(disk, directory);
    const texts = [1, 127, 128, 16383, 16384, 60_000].map((n) => `cpu,a=${'x'.repeat(n)},b=y`);
    for (let round = 0; round < 20; round++) {
      for (const text of texts) ensure(index, `${text}${round}`);
    }
    index.persist();
    const again = openSeriesIndex(disk, directory);
    for (let round = 0; round < 20; round++) {
      texts.forEach((text, n) => {
        expect(find(again, `${text}${round}`)).toBe(round * texts.length + n);
        expect(again.key(round * texts.length + n)).toBe(`${text}${round}`);
      });
    }
  });

  test('a file of mostly removed series shrinks when it is opened, and numbers stay', () => {
    const disk = new MemoryDisk();
    const index = openSeriesIndex(disk, directory);
    for (let n = 0; n < 15_000; n++) ensure(index, `${n % 2 ? 'cpu' : 'm\\ em'},host=h${n}`);
    index.addField(0, 'usage', 'string');
    for (let n = 0; n < 15_000; n++) if (n % 100 !== 42) index.removeSeries(n);
    index.persist();
    const before = disk.files.get(path)!.length;
    for (let opens = 0; opens < 2; opens++) {
      const again = openSeriesIndex(disk, directory);
      expect(disk.files.get(path)!.length).toBeLessThan(before / 5);
      expect(again.seriesCount).toBe(15_000);
      expect(again.liveSeriesOf(again.findMeasurement('m em'))).toBe(150);
      expect(again.liveSeriesOf(again.findMeasurement('cpu'))).toBe(0);
      expect(again.findField(0, 'usage')?.type).toBe('string');
      expect(again.key(14_942)).toBe('m\\ em,host=h14942');
      expect(again.isRemoved(14_941)).toBe(true);
      expect(again.measurementOf(14_941)).toBe(index.measurementOf(14_941));
      expect(inOneGo(again.select(0, undefined)).length).toBe(150);
      again.close();
    }
  });
});

test('200,000 series take little memory, and come back', () => {
  const disk = new MemoryDisk();
  const index = openSeriesIndex(disk, directory);
  const host = (n: number) =>
    `cpu,arch=x${n % 2},datacenter=us-west-1${n % 3},hostname=host_${n},os=Ubuntu16.${n % 4},rack=${n % 100}` +
    `,region=us-west-1,service=${n % 20},service_environment=production,service_version=${n % 2},team=NYC`;
  for (let n = 0; n < 200_000; n++) ensure(index, host(n));
  index.persist();
  expect(index.bytes).toBeLessThan(200_000 * 120);
  expect(disk.files.get(path)!.length).toBeLessThan(200_000 * 32);
  const again = openSeriesIndex(disk, directory);
  expect(find(again, host(123_456))).toBe(123_456);
  expect([...inOneGo(again.select(0, equal('hostname', 'host_777')))]).toEqual([777]);
  expect(inOneGo(again.select(0, undefined)).length).toBe(200_000);
  expect(again.tagValueCount(0, 'hostname')).toBe(200_000);
});

import { afterEach, expect, test, vi } from 'vitest';
import { keyedHash } from '../../../universal-row/keyed-hash.ts';
import { collidingKeys } from '../../../universal-row/testing/colliding-keys.ts';
import { MemoryDisk } from '../../memory/testing/memory-disk.ts';
import { ByteArena } from './byte-arena.ts';
import { openSeriesIndex } from './series-index.ts';
import { SeriesRows } from './series-rows.ts';
import { ValueDictionary } from './value-dictionary.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

test('series whose keys collide by FNV are found without a look at each other, also once stored', () => {
  const keys = collidingKeys('m,t=', 10);
  const comparisons = vi.spyOn(SeriesRows.prototype, 'equalsKey');
  const disk = new MemoryDisk();
  let index = openSeriesIndex(disk, 'shard');
  const find = (key: Buffer) => index.findSeries(key, 0, key.length, keyedHash(key, 0, key.length));
  for (const key of keys) {
    expect(find(key)).toBe(-1);
    index.addSeries(key, 0, key.length);
  }
  // Not one, but for chance.
  expect(comparisons.mock.calls.length).toBeLessThan(10);
  index.persist();
  index.close();
  index = openSeriesIndex(disk, 'shard');
  for (const [i, key] of keys.entries()) expect(find(key)).toBe(i);
  expect(comparisons.mock.calls.length).toBeLessThan(keys.length + 20);
  for (let i = 0; i < keys.length; i += 2) index.removeSeries(i);
  for (const [i, key] of keys.entries()) expect(find(key)).toBe(i % 2 === 0 ? -1 : i);
});

test('values of a tag that collide by FNV are found without a look at each other', () => {
  const comparisons = vi.spyOn(ByteArena.prototype, 'match');
  const tally = { bytes: 0 };
  const values = new ValueDictionary(new ByteArena(tally), tally);
  const texts = collidingKeys('', 10);
  for (const [i, text] of texts.entries()) {
    expect(values.intern(text, 0, text.length)).toBe(i + 1);
    expect(values.internPart(text, 0, text.length)).toBe(i + 1);
  }
  // One for each that is there, and one for the guess that it is the last one again.
  expect(comparisons.mock.calls.length).toBeLessThan(texts.length * 2 + 20);
});

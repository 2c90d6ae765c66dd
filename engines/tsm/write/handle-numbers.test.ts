import { describe, expect, test } from 'vitest';
import type { SeriesCache } from '../../../universal-row/series/series-cache.ts';
import { HandleNumbersByShard } from './handle-numbers.ts';

const cacheOf = (size: number): SeriesCache => ({
  generation: 0,
  size,
  keys: () => Buffer.alloc(0),
  keyStart: () => 0,
  keyEnd: () => 0,
  keyHash: () => 0,
});

describe('numbers of handles', () => {
  test('are kept for many shards that have few', () => {
    const shards = new HandleNumbersByShard();
    const caches = Array.from({ length: 1000 }, () => cacheOf(10));
    for (const [shard, cache] of caches.entries()) shards.of(shard, cache).numbers[3] = shard + 1;
    for (const [shard, cache] of caches.entries()) {
      expect(shards.of(shard, cache).numbers[3]).toBe(shard + 1);
    }
    shards.forget(5);
    expect(shards.of(5, caches[5]!).numbers[3]).toBe(0);
  });

  test('are kept for few shards that have many', () => {
    const shards = new HandleNumbersByShard();
    const cache = cacheOf(2_000_000);
    for (let shard = 0; shard < 40; shard++) shards.of(shard, cache).numbers[0] = shard + 1;
    const kept = Array.from({ length: 40 }, (_, i) => 39 - i).filter(
      (shard) => shards.of(shard, cache).numbers[0] === shard + 1,
    );
    // Keys looked up but not found displace others.
    expect(kept).toEqual(Array.from({ length: 16 }, (_, i) => 39 - i));
  });

  test('do not outlive their cache', () => {
    const shards = new HandleNumbersByShard();
    shards.of(1, cacheOf(10)).numbers[0] = 7;
    expect(shards.of(1, cacheOf(10)).numbers[0]).toBe(0);
  });
});

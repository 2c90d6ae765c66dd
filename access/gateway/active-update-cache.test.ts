import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Rng } from '../../universal-row/environment.ts';
import {
  ActiveUpdateCache,
  type ActiveUpdateCacheOptions,
  type Flight,
} from './active-update-cache.ts';

function rngFrom(seed: number): Rng {
  let state = seed;
  return { next: () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647 };
}

function cacheOf(options: Partial<ActiveUpdateCacheOptions> = {}): ActiveUpdateCache<string> {
  return new ActiveUpdateCache(options, rngFrom(1));
}

/** Looks, and loads at once what is to be loaded. */
function read(cache: ActiveUpdateCache<string>, key: string, now: number, value = 'v'): string {
  const look = cache.look(key, now);
  if (look === 'load' || look === 'refresh') cache.loaded(cache.flight!, value, 10);
  return look;
}

test('a cold entry expires, a hot one is refreshed before', () => {
  const cache = cacheOf({ jitter: 0 });
  expect(read(cache, 'k', 0)).toBe('load');
  expect(read(cache, 'k', 100)).toBe('hit');
  expect(cache.value).toBe('v');
  expect(read(cache, 'k', 9000)).toBe('hit');
  expect(read(cache, 'k', 10_000)).toBe('load');
  for (let now = 10_100; now <= 10_300; now += 100) expect(read(cache, 'k', now)).toBe('hit');
  expect(read(cache, 'k', 17_999)).toBe('hit');
  expect(read(cache, 'k', 18_000, 'w')).toBe('refresh');
  expect(cache.value).toBe('v');
  expect(read(cache, 'k', 18_001)).toBe('hit');
  expect(cache.value).toBe('w');
  expect([cache.hits, cache.loads, cache.refreshes]).toEqual([8, 3, 1]);
});

test('one loads, the others wait for it; a refresh is one as well', () => {
  const cache = cacheOf({ jitter: 0, hotHits: 1 });
  expect(cache.look('k', 0)).toBe('load');
  const { flight } = cache;
  cache.flight = undefined;
  expect(cache.look('k', 1)).toBe('wait');
  expect(cache.flight).toBe(flight);
  cache.loaded(flight!, 'v', 1);
  expect(cache.look('k', 8000)).toBe('refresh');
  expect(cache.look('k', 8001)).toBe('hit');
});

test('that there is nothing is remembered too', () => {
  const cache = cacheOf();
  cache.look('k', 0);
  cache.loaded(cache.flight!, undefined, 0);
  expect(cache.look('k', 1)).toBe('hit');
  expect(cache.value).toBeUndefined();
});

test('what a write has outdated is never seen after it', () => {
  const cache = cacheOf();
  cache.look('k', 0);
  const before = cache.flight!;
  cache.invalidate('k');
  expect(cache.look('k', 1)).toBe('load');
  const after = cache.flight!;
  cache.loaded(before, 'old', 3);
  expect(cache.look('k', 2)).toBe('wait');
  cache.loaded(after, 'new', 3);
  expect(cache.look('k', 3)).toBe('hit');
  expect(cache.value).toBe('new');
  cache.invalidate('k');
  expect(cache.look('k', 4)).toBe('load');
});

test('a refresh that fails leaves what is there until its time is over', () => {
  const cache = cacheOf({ jitter: 0, hotHits: 1 });
  read(cache, 'k', 0);
  let refreshes = 0;
  for (let now = 7000; now < 10_000; now += 10) {
    const look = cache.look('k', now);
    if (look === 'refresh') {
      refreshes++;
      cache.failed(cache.flight!, now);
    } else expect(look).toBe('hit');
  }
  expect(refreshes).toBeGreaterThan(1);
  expect(refreshes).toBeLessThan(8);
  expect(cache.look('k', 10_000)).toBe('load');
  cache.failed(cache.flight!, 10_000);
  expect(cache.look('k', 10_001)).toBe('load');
});

test('a bound on age: too old an entry or load is no answer', () => {
  const cache = cacheOf();
  read(cache, 'k', 0);
  expect(cache.look('k', 500, 1000)).toBe('hit');
  expect(cache.look('k', 1500, 1000)).toBe('load');
  expect(cache.look('k', 1600, 1000)).toBe('wait');
  expect(cache.look('k', 1600)).toBe('hit');
  expect(cache.look('k', 1600, 50)).toBe('bypass');
});

test('the refreshes of entries that were loaded together are spread', () => {
  const cache = cacheOf({ hotHits: 1 });
  const keys = Array.from({ length: 1000 }, (_, i) => `k${i}`);
  for (const key of keys) read(cache, key, 0);
  const perSlot = new Map<number, number>();
  for (let now = 10; now < 9500; now += 10) {
    for (const key of keys) {
      if (read(cache, key, now) !== 'refresh') continue;
      perSlot.set(now, (perSlot.get(now) ?? 0) + 1);
    }
  }
  expect(Math.min(...perSlot.keys())).toBeGreaterThanOrEqual(8000);
  expect(Math.max(...perSlot.keys())).toBeLessThanOrEqual(9000);
  expect(Math.max(...perSlot.values())).toBeLessThan(40);
});

test('a sweep refreshes what is hot but was not read of late, and forgets what has expired', () => {
  const cache = cacheOf();
  for (const key of ['hot', 'cold']) read(cache, key, 0);
  for (let now = 1; now < 5; now++) read(cache, 'hot', now);
  const swept = (now: number): string[] => {
    const keys: string[] = [];
    cache.sweep(now, (flight: Flight) => {
      keys.push(flight.key);
      cache.loaded(flight, 'again', 5);
    });
    return keys;
  };
  expect(swept(8000)).toEqual([]);
  expect(swept(9000)).toEqual(['hot']);
  expect(swept(9500)).toEqual([]);
  expect(cache.size).toBe(2);
  expect(swept(10_000)).toEqual([]);
  expect(cache.size).toBe(1);
  expect(cache.look('hot', 12_000)).toBe('hit');
  expect(swept(19_000)).toEqual([]);
  expect(cache.size).toBe(0);
  expect(cache.bytes).toBe(0);
});

test('a read that is not sure to be let in finds what is there, and begins nothing', () => {
  const cache = cacheOf({ jitter: 0, hotHits: 1 });
  expect(cache.find('k', 0)).toBe('miss');
  expect(read(cache, 'k', 1)).toBe('load');
  expect(cache.find('k', 2)).toBe('hit');
  expect(cache.value).toBe('v');
  expect(cache.find('k', 100, 50)).toBe('miss');
  expect(cache.find('k', 8001)).toBe('refresh');
  expect(cache.find('k', 10_001)).toBe('miss');
});

test('made smaller it keeps what was used last', () => {
  const cache = cacheOf();
  for (const key of ['a', 'b', 'c']) read(cache, key, 0);
  const each = cache.bytes / 3;
  cache.resize(2 * each);
  expect([cache.size, cache.bytes]).toEqual([2, 2 * each]);
  expect(cache.find('a', 1)).toBe('miss');
  expect(cache.find('c', 1)).toBe('hit');
  cache.resize(0);
  expect(cache.size).toBe(0);
});

test('large entries are not kept, and none are when it is off', () => {
  const cache = cacheOf({ capacityBytes: 16_000 });
  cache.look('k', 0);
  cache.loaded(cache.flight!, 'v', 900);
  expect(cache.look('k', 1)).toBe('load');
  expect(cacheOf({ enabled: false }).look('k', 0)).toBe('bypass');
});

const step = fc.record({
  kind: fc.constantFrom('read', 'read', 'read', 'land', 'fail', 'write', 'sweep', 'clear'),
  key: fc.nat(30),
  gap: fc.nat(1500),
  bytes: fc.nat(400),
});

test('within its bytes, never older than its time to live, never older than a write', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 400 }), (steps) => {
      const capacityBytes = 4000;
      const cache = new ActiveUpdateCache<{ version: number; at: number }>(
        { capacityBytes, largestEntry: 0.2 },
        rngFrom(7),
      );
      const versions = Array.from({ length: 31 }, () => 0);
      const flights: { flight: Flight; value: { version: number; at: number } }[] = [];
      let now = 0;
      const begin = (flight: Flight): void => {
        const version = versions[Number(flight.key)]!;
        flights.push({ flight, value: { version, at: now } });
      };
      for (const { kind, key, gap, bytes } of steps) {
        now += gap;
        if (kind === 'read') {
          const look = cache.look(String(key), now);
          if (look === 'load' || look === 'refresh') begin(cache.flight!);
          if (look === 'hit' || look === 'refresh') {
            expect(now - cache.value!.at).toBeLessThan(10_000);
            expect(cache.value!.version).toBe(versions[key]);
          }
        } else if (kind === 'land' || kind === 'fail') {
          const [landed] = flights.splice(key % Math.max(1, flights.length), 1);
          if (landed === undefined) continue;
          if (kind === 'land') cache.loaded(landed.flight, landed.value, bytes);
          else cache.failed(landed.flight, now);
        } else if (kind === 'write') {
          versions[key]!++;
          cache.invalidate(String(key));
        } else if (kind === 'sweep') cache.sweep(now, begin);
        else if (key === 0) cache.clear();
        expect(cache.bytes).toBeLessThanOrEqual(capacityBytes);
        expect(cache.bytes).toBeGreaterThanOrEqual(cache.size * 200);
      }
    }),
    { numRuns: 300 },
  );
});

test('what was used least recently goes first', () => {
  const keys = fc.array(fc.nat(12), { maxLength: 200 });
  fc.assert(
    fc.property(keys, (all) => {
      // Room for four entries of 300 bytes and a key of a letter.
      const cache = cacheOf({ capacityBytes: 4 * 502, largestEntry: 1 });
      const model: number[] = [];
      for (const key of all) {
        const look = cache.look(String.fromCharCode(97 + key), 0);
        expect(look).toBe(model.includes(key) ? 'hit' : 'load');
        if (look === 'load') cache.loaded(cache.flight!, 'v', 300);
        if (model.includes(key)) model.splice(model.indexOf(key), 1);
        model.push(key);
        if (model.length > 4) model.shift();
      }
    }),
  );
});

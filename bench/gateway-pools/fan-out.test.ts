import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FanOut } from './fan-out.ts';

test('a key goes to proxies of its group only, and to all of them', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 60 }),
      fc.integer({ min: 1, max: 80 }),
      fc.nat(),
      (proxies, groups, hash) => {
        const fanOut = new FanOut(proxies, groups);
        expect(fanOut.groups).toBe(Math.min(proxies, groups));
        const group = fanOut.groupOf(hash);
        const seen = new Set<number>();
        for (let n = 0; n < 1000; n++) seen.add(fanOut.pick(hash, { next: () => n / 1000 }));
        const all = Array.from({ length: proxies }, (_, proxy) => proxy);
        expect([...seen].sort((a, b) => a - b)).toEqual(
          all.filter((proxy) => proxy % fanOut.groups === group),
        );
      },
    ),
  );
});

test('keys are even over groups, and a list is split without losing any', () => {
  const fanOut = new FanOut(150, 15);
  const hashes = Array.from({ length: 30_000 }, (_, n) => n);
  const parts = fanOut.split(hashes);
  expect(parts.size).toBe(15);
  expect([...parts.values()].flat().sort((a, b) => a - b)).toEqual(hashes);
  for (const part of parts.values()) expect(Math.abs(part.length - 2000)).toBeLessThan(200);
  for (const [group, part] of parts) for (const i of part) expect(fanOut.groupOf(i)).toBe(group);
});

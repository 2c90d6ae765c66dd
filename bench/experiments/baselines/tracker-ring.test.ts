import { expect, test } from 'vitest';
import { TrackerRing } from './tracker-ring.ts';

const keys = Array.from({ length: 20_000 }, (_, i) => i * 7919);

function counts(ring: TrackerRing): Map<string, number> {
  const by = new Map<string, number>();
  for (const key of keys) by.set(ring.ownerOf(key)!, (by.get(ring.ownerOf(key)!) ?? 0) + 1);
  return by;
}

test('keys are spread over the trackers, by all in the same way', () => {
  const names = ['t1', 't2', 't3', 't4', 't5'];
  const by = counts(new TrackerRing(names));
  for (const name of names) {
    expect(by.get(name)! / (keys.length / names.length)).toBeGreaterThan(0.7);
    expect(by.get(name)! / (keys.length / names.length)).toBeLessThan(1.3);
  }
  const other = new TrackerRing(names.toReversed());
  const ring = new TrackerRing(names);
  expect(keys.every((key) => ring.ownerOf(key) === other.ownerOf(key))).toBe(true);
  expect(new TrackerRing().ownerOf(1)).toBeUndefined();
});

test('only the keys of a tracker that comes or goes change hands', () => {
  const ring = new TrackerRing(['t1', 't2', 't3', 't4']);
  const before = keys.map((key) => ring.ownerOf(key));
  ring.add('t5');
  let moved = 0;
  for (const [i, key] of keys.entries()) {
    const owner = ring.ownerOf(key);
    if (owner === before[i]) continue;
    moved++;
    expect(owner).toBe('t5');
  }
  expect(moved / keys.length).toBeLessThan(0.3);
  ring.remove('t5');
  expect(keys.every((key, i) => ring.ownerOf(key) === before[i])).toBe(true);
});

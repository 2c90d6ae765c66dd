import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Slice, compareBytes } from '../../universal-row/bytes.ts';
import { Shape } from '../../universal-row/rows.ts';
import { MemoryEngine } from './memory-engine.ts';
import {
  Random,
  bytes,
  contents,
  create,
  find,
  push,
  put,
  putField,
  putScore,
  removeField,
} from './testing/oracle.ts';
import type { Oracle } from './testing/oracle.ts';
import { writeOnce } from './testing/random-writes.ts';

const seeds = fc.integer({ min: 0, max: 0xffffffff });

function drain(engine: MemoryEngine): void {
  while (engine.background(1000));
}

function randomWrites(seed: number, keys: number, fields: number, writes: number): void {
  const engine = new MemoryEngine();
  const table = engine.table(0);
  const oracle: Oracle = new Map();
  const random = new Random(seed);
  for (let i = 0; i < writes; i++) {
    writeOnce(random, { keys, fields }, table, oracle);
    if (i % 1000 === 0) engine.background(0);
  }
  expect(contents(table)).toEqual(oracle);
  expect(table.rowCount()).toBe(oracle.size);
  for (const key of oracle.keys()) table.drop(find(table, key));
  drain(engine);
  expect(engine.stats()).toMatchObject({ rows: 0, usedBytes: 0, pendingReclaimBytes: 0 });
  expect(engine.stats().extra['memory_arena_used_bytes']).toBe(0);
}

describe('any sequence of writes leaves what the same writes leave in plain maps and arrays', () => {
  test('on small rows', () => {
    fc.assert(
      fc.property(seeds, (seed) => randomWrites(seed, 20, 8, 1500)),
      { numRuns: 15 },
    );
  });

  test('on rows that grow big', () => {
    fc.assert(
      fc.property(seeds, (seed) => randomWrites(seed, 3, 600, 8000)),
      { numRuns: 6 },
    );
  });

  test('on many rows', () => {
    fc.assert(
      fc.property(seeds, (seed) => randomWrites(seed, 30_000, 10, 60_000)),
      { numRuns: 2 },
    );
  });
});

describe('ranked rows', () => {
  const check = (members: number, range: number, seed: number) => {
    const table = new MemoryEngine().table(0);
    const row = create(table, 'z', Shape.ranked);
    const random = new Random(seed);
    const scores = new Map<string, number>();
    for (let i = 0; i < members * 2; i++) {
      const member = `m${random.below(members)}`;
      if (scores.size > 1 && random.below(4) === 0) {
        expect(removeField(table, row, member)).toBe(scores.delete(member));
      } else {
        const score = random.below(range);
        putScore(table, row, member, score);
        scores.set(member, score);
      }
    }
    const sorted = [...scores].sort(([a, x], [b, y]) => x - y || (a < b ? -1 : 1));
    const names = sorted.map(([member]) => member);
    const seen: string[] = [];
    const see = (b: Buffer, s: number, n: number) => {
      seen.push(b.toString('latin1', s, s + n));
    };
    const walked = (walk: () => void) => {
      seen.length = 0;
      walk();
      return [...seen];
    };
    expect(walked(() => table.eachByRank(row, 0, Infinity, false, see))).toEqual(names);
    expect(walked(() => table.eachByRank(row, 0, Infinity, true, see))).toEqual(names.toReversed());
    for (let i = 0; i < 50; i++) {
      const at = random.below(names.length);
      const member = bytes(names[at]!);
      expect(table.rank(row, member, 0, member.length)).toBe(at);
      expect(table.score(row, member, 0, member.length)).toBe(sorted[at]![1]);
      const few = 1 + random.below(200);
      expect(walked(() => table.eachByRank(row, at, few, false, see))).toEqual(
        names.slice(at, at + few),
      );
      const bounds = {
        min: random.below(range),
        minExclusive: random.below(2) === 0,
        max: random.below(range),
        maxExclusive: random.below(2) === 0,
      };
      const inside = sorted
        .filter(([, x]) => (bounds.minExclusive ? x > bounds.min : x >= bounds.min))
        .filter(([, x]) => (bounds.maxExclusive ? x < bounds.max : x <= bounds.max))
        .map(([name]) => name);
      expect(table.countByScore(row, bounds)).toBe(inside.length);
      const offset = random.below(5);
      expect(walked(() => table.eachByScore(row, bounds, false, offset, 10, see))).toEqual(
        inside.slice(offset, offset + 10),
      );
      expect(walked(() => table.eachByScore(row, bounds, true, offset, -1, see))).toEqual(
        inside.toReversed().slice(offset),
      );
    }
    expect(table.rank(row, bytes('nobody'), 0, 6)).toBe(-1);
    expect(table.score(row, bytes('nobody'), 0, 6)).toBeNaN();
  };

  test('are in order by score and then member, packed and big', () => {
    fc.assert(
      fc.property(seeds, (seed) => {
        check(60, 20, seed);
        check(3000, 50, seed);
        check(6000, 1_000_000, seed);
      }),
      { numRuns: 3 },
    );
  });

  test.each([50, 3000])('are in order by member when scores are equal (%i)', (members) => {
    const table = new MemoryEngine().table(0);
    const row = create(table, 'z', Shape.ranked);
    const names = Array.from({ length: members }, (_, i) => `m${i}`);
    for (const name of names) putScore(table, row, name, 0);
    const sorted = names.map(bytes).sort((a, b) => compareBytes(a, 0, a.length, b, 0, b.length));
    for (const [min, max] of [
      ['m1', 'm3'],
      ['m2', 'm2'],
      ['a', 'm17'],
      ['m9', 'z'],
      ['m3', 'm1'],
    ] as const) {
      for (const exclusive of [false, true]) {
        const inside = sorted.filter((name) => {
          const low = Buffer.compare(name, bytes(min));
          const high = Buffer.compare(name, bytes(max));
          return exclusive ? low > 0 && high < 0 : low >= 0 && high <= 0;
        });
        const range = {
          min: bytes(min),
          minExclusive: exclusive,
          max: bytes(max),
          maxExclusive: exclusive,
        };
        expect(table.countByLex(row, range)).toBe(inside.length);
        const seen: string[] = [];
        table.eachByLex(row, range, true, 1, 20, (b, s, n) => {
          seen.push(b.toString('latin1', s, s + n));
        });
        expect(seen).toEqual(inside.map(String).toReversed().slice(1, 21));
      }
    }
    const open = { min: undefined, minExclusive: false, max: undefined, maxExclusive: false };
    expect(table.countByLex(row, open)).toBe(members);
  });

  test('store minus zero as zero', () => {
    const table = new MemoryEngine().table(0);
    const row = create(table, 'z', Shape.ranked);
    putScore(table, row, 'a', -0);
    expect(Object.is(table.score(row, bytes('a'), 0, 1), 0)).toBe(true);
  });
});

describe('arrays', () => {
  test.each([100, 5000])('are read at any index, from any index, in both directions (%i)', (n) => {
    const table = new MemoryEngine().table(0);
    const row = create(table, 'l', Shape.array);
    const elements = Array.from({ length: n }, (_, i) => `element ${i} ${'x'.repeat(i % 30)}`);
    for (const element of elements) push(table, row, false, element);
    const out = new Slice();
    for (let i = 0; i < n; i += 7) {
      expect(table.element(row, i, out) && out.view().toString()).toBe(elements[i]);
    }
    expect(table.element(row, n, out)).toBe(false);
    expect(table.element(row, -1, out)).toBe(false);
    const random = new Random(n);
    for (let i = 0; i < 50; i++) {
      const from = random.below(n);
      const count = random.below(300);
      const seen: string[] = [];
      const see = (b: Buffer, s: number, m: number) => {
        seen.push(b.toString('latin1', s, s + m));
      };
      table.eachElement(row, from, count, false, see);
      expect(seen).toEqual(elements.slice(from, from + count));
      seen.length = 0;
      table.eachElement(row, from, count, true, see);
      expect(seen).toEqual(elements.slice(Math.max(0, from + 1 - count), from + 1).toReversed());
    }
  });

  test('take an element of their own', () => {
    const table = new MemoryEngine().table(0);
    const row = create(table, 'l', Shape.array);
    const elements = Array.from({ length: 100 }, (_, i) => `${i}`.repeat(5));
    for (const element of elements) push(table, row, false, element);
    const out = new Slice();
    for (let i = 0; i < 300; i++) {
      table.element(row, elements.length - 1, out);
      table.push(row, true, out.b, out.s, out.n);
      elements.unshift(elements.at(-1)!);
      table.element(row, 3, out);
      table.insertElement(row, 2, out.b, out.s, out.n);
      elements.splice(2, 0, elements[3]!);
    }
    expect(contents(table).get('l')).toEqual({ shape: Shape.array, expireAt: 0, elements });
  });
});

describe('walks', () => {
  test('see every row that is there throughout, while others come and go', () => {
    const table = new MemoryEngine().table(0);
    const random = new Random(5);
    for (let i = 0; i < 5000; i++) put(table, `stays ${i}`, 'x');
    for (let i = 0; i < 5000; i++) put(table, `goes ${i}`, 'x');
    const seen = new Map<string, number>();
    let cursor = 0;
    do {
      cursor = table.scan(cursor, 50, (row) => {
        const out = new Slice();
        table.key(row, out);
        const key = out.view().toString();
        seen.set(key, (seen.get(key) ?? 0) + 1);
      });
      for (let i = 0; i < 100; i++) {
        const row = find(table, `goes ${random.below(5000)}`);
        if (row !== 0) table.drop(row);
        put(table, `comes ${random.below(100_000)}`, 'x');
      }
    } while (cursor !== 0);
    for (let i = 0; i < 5000; i++) expect(seen.get(`stays ${i}`)).toBe(1);
  });

  test.each([
    ['set', Shape.set],
    ['ranked', Shape.ranked],
  ] as const)('see every member of a %s that is there throughout', (_, shape) => {
    const table = new MemoryEngine().table(0);
    const random = new Random(6);
    const row = create(table, 's', shape);
    const add = (member: string) =>
      shape === Shape.set
        ? putField(table, row, member, '')
        : putScore(table, row, member, random.below(100));
    for (let i = 0; i < 3000; i++) {
      add(`goes ${i}`);
      add(`stays ${i}`);
    }
    const seen = new Set<string>();
    let cursor = 0;
    do {
      cursor = table.scanFields(row, cursor, 20, (fb, fs, fn, _vb, _vs, vn) => {
        expect(vn).toBe(0);
        seen.add(fb.toString('latin1', fs, fs + fn));
      });
      for (let i = 0; i < 20; i++) {
        removeField(table, row, `goes ${random.below(3000)}`);
        add(`comes ${random.below(100_000)}`);
      }
    } while (cursor !== 0);
    for (let i = 0; i < 3000; i++) expect(seen.has(`stays ${i}`)).toBe(true);
  });

  test.each([
    [20, Shape.map],
    [2000, Shape.map],
    [20, Shape.set],
    [2000, Shape.set],
    [20, Shape.ranked],
    [2000, Shape.ranked],
  ] as const)('fieldAt goes through all %i fields of shape %i', (fields, shape) => {
    const table = new MemoryEngine().table(0);
    const row = create(table, 'f', shape);
    for (let i = 0; i < fields; i++) {
      if (shape === Shape.ranked) putScore(table, row, `f${i}`, -i);
      else putField(table, row, `f${i}`, shape === Shape.map ? `v${i}` : '');
    }
    const field = new Slice();
    const value = new Slice();
    const seen = new Set<string>();
    for (let i = 0; i < fields; i++) {
      table.fieldAt(row, i, field, value);
      const name = field.view().toString();
      seen.add(name);
      expect(value.view().toString()).toBe(shape === Shape.map ? `v${name.slice(1)}` : '');
    }
    expect(seen.size).toBe(fields);
  });

  test('anyRow finds the few rows left of many', () => {
    const table = new MemoryEngine().table(0);
    for (let i = 0; i < 50_000; i++) put(table, `k${i}`, 'x');
    for (let i = 0; i < 50_000; i++) if (i % 10_000 !== 5) table.drop(find(table, `k${i}`));
    const found = new Set<number>();
    for (let i = 0; i < 200; i++) found.add(table.anyRow(i / 200));
    expect(found.size).toBe(5);
    table.clear();
    expect(table.anyRow(0.5)).toBe(0);
  });
});

describe('expiry', () => {
  test('the soonest is listed first, and what is listed is what is due', () => {
    const table = new MemoryEngine().table(0);
    const random = new Random(7);
    const times = new Map<number, number>();
    for (let i = 0; i < 3000; i++) {
      const row = put(table, `k${random.below(1000)}`, 'x', 0);
      const time = random.below(4) * random.below(1000);
      table.setExpireAt(row, time);
      if (time === 0) times.delete(row);
      else times.set(row, time);
    }
    expect(table.expiringRows).toBe(times.size);
    for (const [row, time] of times) expect(table.expireAt(row)).toBe(time);
    let last = 0;
    while (times.size > 0) {
      const soonest = Math.min(...times.values());
      expect(soonest).toBeGreaterThanOrEqual(last);
      const due: number[] = [];
      table.expired(soonest - 1, 10, (row) => due.push(row));
      expect(due).toEqual([]);
      table.expired(soonest + 5, 10, (row) => {
        if (due.length === 0) expect(times.get(row)).toBe(soonest);
        expect(times.get(row)).toBeLessThanOrEqual(soonest + 5);
        due.push(row);
        times.delete(row);
        table.drop(row);
      });
      expect(due.length).toBeGreaterThan(0);
      last = soonest;
    }
    expect(table.expiringRows).toBe(0);
  });
});

describe('memory', () => {
  test('held for small values serves larger ones after them', () => {
    const engine = new MemoryEngine();
    const table = engine.table(0);
    for (let i = 0; i < 50_000; i++) put(table, `key ${i}`, 'x'.repeat(100));
    const held = engine.stats().memoryBytes;
    for (let i = 0; i < 50_000; i++) table.drop(find(table, `key ${i}`));
    for (let i = 0; i < 15_000; i++) put(table, `key ${i}`, 'x'.repeat(300));
    expect(engine.stats().memoryBytes).toBeLessThan(held * 1.1);
  });

  test('of a table that is cleared is freed in the background', () => {
    const engine = new MemoryEngine();
    const table = engine.table(0);
    for (let i = 0; i < 20_000; i++) put(table, `key ${i}`, 'x'.repeat(100), i + 1);
    for (const shape of [Shape.map, Shape.set, Shape.ranked, Shape.array] as const) {
      const row = create(table, `big ${shape}`, shape);
      for (let i = 0; i < 2000; i++) {
        if (shape === Shape.array) push(table, row, true, `element ${i}`);
        else if (shape === Shape.ranked) putScore(table, row, `member ${i}`, i);
        else putField(table, row, `field ${i}`, shape === Shape.map ? 'value' : '');
      }
    }
    table.clear();
    expect(table.rowCount()).toBe(0);
    expect(table.expiringRows).toBe(0);
    expect(engine.stats().pendingReclaimBytes).toBeGreaterThan(2_000_000);
    put(table, 'another', 'x');
    drain(engine);
    expect(contents(table).size).toBe(1);
    table.drop(find(table, 'another'));
    expect(engine.stats()).toMatchObject({ usedBytes: 0, pendingReclaimBytes: 0 });
    expect(engine.stats().memoryBytes).toBeLessThan(3 * 1024 * 1024);
  });

  test('of rows deleted here and there goes back, and the others keep what they hold', () => {
    const engine = new MemoryEngine();
    const table = engine.table(0);
    for (let i = 0; i < 150_000; i++) put(table, `key ${i}`, `${i} `.repeat(20));
    const fields = create(table, 'map', Shape.map);
    const elements = create(table, 'array', Shape.array);
    for (let i = 0; i < 20_000; i++) {
      putField(table, fields, `field ${i}`, `value ${i}`.repeat(10));
      push(table, elements, false, `element ${i}`.repeat(10));
    }
    for (let i = 0; i < 150_000; i++) if (i % 10 !== 0) table.drop(find(table, `key ${i}`));
    for (let i = 0; i < 20_000; i++) if (i % 10 !== 0) removeField(table, fields, `field ${i}`);
    const expected = contents(table);
    const before = engine.stats();
    drain(engine);
    const after = engine.stats();
    expect(after.usedBytes).toBe(before.usedBytes);
    const held = 'memory_arena_held_bytes';
    expect(after.extra[held]!).toBeLessThan(before.extra[held]! / 2);
    expect(after.extra[held]!).toBeLessThan(after.usedBytes + (4 << 20));
    expect(contents(table)).toEqual(expected);
    for (let i = 0; i < 150_000; i++) put(table, `key ${i}`, 'x'.repeat(i % 300));
    table.clear();
    drain(engine);
    expect(engine.stats().usedBytes).toBe(0);
    expect(engine.stats().extra[held]!).toBeLessThanOrEqual(4 << 20);
  });

  test('goes back while writes go on', () => {
    const engine = new MemoryEngine();
    const table = engine.table(0);
    const random = new Random(8);
    const values = new Map<string, string>();
    for (let i = 0; i < 150_000; i++) put(table, `key ${i}`, 'x'.repeat(100));
    for (let i = 0; i < 150_000; i++) {
      if (i % 5 === 0) values.set(`key ${i}`, 'x'.repeat(100));
      else table.drop(find(table, `key ${i}`));
    }
    const before = engine.stats().memoryBytes;
    let slices = 0;
    for (; engine.background(0); slices++) {
      for (let i = 0; i < 50; i++) {
        const key = `key ${random.below(150_000)}`;
        const value = `${slices}`.repeat(random.below(40));
        put(table, key, value);
        values.set(key, value);
        const other = `key ${random.below(150_000)}`;
        if (values.delete(other)) table.drop(find(table, other));
      }
    }
    expect(slices).toBeGreaterThan(20);
    expect(engine.stats().memoryBytes).toBeLessThan(before * 0.6);
    const found = contents(table);
    expect(found.size).toBe(values.size);
    for (const [key, value] of values) expect(found.get(key)).toMatchObject({ bytes: value });
    table.clear();
    while (engine.background(1000));
    expect(engine.stats().usedBytes).toBe(0);
  });

  test('a value that grows by small steps is not copied at each', () => {
    const engine = new MemoryEngine();
    const table = engine.table(0);
    const row = put(table, 'k', '');
    const chunk = Buffer.alloc(1000, 'a');
    for (let i = 0; i < 3000; i++) table.patchValue(row, i * 1000, chunk, 0, 1000);
    expect(table.count(row)).toBe(3_000_000);
    expect(table.footprint(row)).toBeLessThan(3_000_000 * 1.4);
    put(table, 'k', 'short');
    expect(engine.stats().usedBytes).toBeLessThan(100);
  });
});

test('tables that are swapped answer under each other’s number', () => {
  const engine = new MemoryEngine();
  put(engine.table(0), 'a', '1');
  put(engine.table(3), 'b', '2');
  engine.swapTables(0, 3);
  expect(find(engine.table(0), 'b')).not.toBe(0);
  expect(find(engine.table(3), 'a')).not.toBe(0);
  expect(engine.tables()).toEqual([0, 3]);
  engine.table(0).clear();
  expect(engine.tables()).toEqual([3]);
});

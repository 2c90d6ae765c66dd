// Containers as they grow past each form an engine may keep them in, and shrink again to nothing.

import assert from 'node:assert/strict';
import { Shape } from '../../universal-row/rows.ts';
import { formSizes, noise, range, tableOf, type ConformanceCase } from './case.ts';
import { array, assertSameContents, map, ranked, set, type RowContent } from './contents.ts';
import type { Trial } from './trial.ts';
import { unlimited } from './verbs.ts';

type Container = typeof Shape.map | typeof Shape.set | typeof Shape.ranked | typeof Shape.array;

const containers: readonly (readonly [name: string, shape: Container])[] = [
  ['map', Shape.map],
  ['set', Shape.set],
  ['ranked', Shape.ranked],
  ['array', Shape.array],
];

/** A container of the elements numbered so; `bytes` pads each of them. */
function containerOf(shape: Container, numbers: readonly number[], bytes = 0): RowContent {
  const name = (i: number) => `m${i}${bytes === 0 ? '' : noise(bytes, i)}`;
  switch (shape) {
    case Shape.map:
      return map(...numbers.flatMap((i) => [name(i), `value ${i}`]));
    case Shape.set:
      return set(...numbers.map(name));
    case Shape.ranked:
      return ranked(...numbers.flatMap((i) => [name(i), i % 10]));
    case Shape.array:
      return array(...numbers.map(name));
  }
}

/** Adds elements one at a time in no particular order, then removes them from all sides. */
function growAndShrink(name: string, shape: Container, size: number, bytes = 0): ConformanceCase {
  return {
    name: `size: a ${name} of ${size}${bytes === 0 ? '' : ` elements of ${bytes} bytes`}`,
    async run(trial) {
      const shuffled = range(size).map((i) => (i * 7919) % size);
      const grown = containerOf(shape, shape === Shape.array ? range(size) : shuffled, bytes);
      await trial.fill(tableOf({ k: grown }));
      await trial.check(tableOf({ k: grown }));
      await checkElements(trial, grown);

      // Every third stays; in a very long row every third run, or arrays would take for ever.
      const run = size > 5000 ? 50 : 1;
      const stays = (i: number) => Math.floor(i / run) % 3 === 1;
      const kept = range(size).filter(stays);
      const rest = containerOf(shape, kept, bytes);
      const gone = range(size).filter((i) => !stays(i));
      await removeNumbers(trial, shape, gone, bytes);
      await trial.check(kept.length === 0 ? new Map() : tableOf({ k: rest }));
      if (trial.subject.supports.reopen) {
        await trial.checkpointAndReopen();
        await trial.check(kept.length === 0 ? new Map() : tableOf({ k: rest }));
      }
      await removeNumbers(trial, shape, kept, bytes);
      await trial.check(new Map());

      await trial.fill(tableOf({ k: grown }));
      assertSameContents(await trial.contents(), tableOf({ k: grown }), 'grown again');
    },
  };
}

/** Looks each element up by itself. */
async function checkElements(trial: Trial, { shape, items }: RowContent): Promise<void> {
  const pairs = shape === Shape.map || shape === Shape.ranked;
  const step = pairs ? 2 : 1;
  await trial.read((v) => {
    const row = v.row('k');
    assert.equal(v.table.count(row), items.length / step);
    for (let i = 0; i < items.length; i += step) {
      const item = String(items[i]);
      if (shape === Shape.map) assert.equal(v.field('k', item), items[i + 1]);
      else if (shape === Shape.set) assert.ok(v.hasField('k', item));
      else if (shape === Shape.ranked) assert.equal(v.score('k', item), items[i + 1]);
      else assert.equal(v.element('k', i), item);
    }
  });
}

async function removeNumbers(
  trial: Trial,
  shape: Container,
  numbers: readonly number[],
  bytes: number,
): Promise<void> {
  if (numbers.length === 0) return;
  if (shape === Shape.array) return removeElements(trial, numbers, bytes);
  const items = containerOf(shape, numbers, bytes).items;
  const names = shape === Shape.set ? items : items.filter((_, i) => i % 2 === 0);
  for (let i = 0; i < names.length; i += 500) {
    await trial.run((v) => {
      const row = v.row('k');
      for (const name of names.slice(i, i + 500)) assert.ok(v.removeFieldOf(row, String(name)));
    });
  }
}

/** The numbers are where they are in the list by now: found by walking it once. */
async function removeElements(
  trial: Trial,
  numbers: readonly number[],
  bytes: number,
): Promise<void> {
  const unwanted = new Set(containerOf(Shape.array, numbers, bytes).items);
  const elements = await trial.read((v) => v.elements('k', 0, unlimited));
  const places = range(elements.length).filter((i) => unwanted.has(elements[i]!));
  assert.equal(places.length, numbers.length);
  const runs: { index: number; count: number }[] = [];
  for (const place of places) {
    const last = runs.at(-1);
    if (last !== undefined && last.index + last.count === place) last.count++;
    else runs.push({ index: place, count: 1 });
  }
  // From the tail, so that earlier positions do not change.
  runs.reverse();
  for (let i = 0; i < runs.length; i += 500) {
    await trial.run((v) => {
      for (const { index, count } of runs.slice(i, i + 500)) v.removeElements('k', index, count);
    });
  }
}

/** One long element among short ones is enough to leave a compact form. */
function oneLongElement(name: string, shape: Container, bytes: number): ConformanceCase {
  return {
    name: `size: a ${name} of 10 with one more of ${bytes} bytes`,
    async run(trial) {
      const small = containerOf(shape, range(10));
      const long = containerOf(shape, [99], bytes);
      await trial.fill(tableOf({ k: small }));
      await trial.run((v) => v.extend(v.row('k'), long));
      const both = [...small.items, ...long.items];
      const expected: RowContent =
        shape === Shape.map
          ? map(...(both as string[]))
          : shape === Shape.set
            ? set(...(both as string[]))
            : shape === Shape.ranked
              ? ranked(...both)
              : array(...(both as string[]));
      await trial.check(tableOf({ k: expected }));
      await checkElements(trial, expected);
      await removeNumbers(trial, shape, [99], bytes);
      await trial.check(tableOf({ k: small }));
    },
  };
}

const insertions: ConformanceCase[] = [200, 3000].map((size) => ({
  name: `size: an array of ${size} grows and shrinks in the middle`,
  async run(trial) {
    const elements: string[] = [];
    for (let i = 0; i < size; i += 100) {
      const from = elements.length;
      for (const n of range(100)) elements.splice((from + n) >> 1, 0, `e${i + n}`);
      await trial.run((v) => {
        if (i === 0) v.create('k', Shape.array);
        const row = v.find('k');
        for (const n of range(100)) {
          const name = Buffer.from(`e${i + n}`);
          v.table.insertElement(row, (from + n) >> 1, name, 0, name.length);
        }
      });
    }
    await trial.check(tableOf({ k: array(...elements) }));
    while (elements.length > 10) {
      const count = Math.min(37, elements.length - 10);
      const index = (elements.length - count) >> 1;
      elements.splice(index, count);
      await trial.run((v) => v.removeElements('k', index, count));
    }
    await trial.check(tableOf({ k: array(...elements) }));
  },
}));

export const sizeCases: readonly ConformanceCase[] = [
  ...containers.flatMap(([name, shape]) => [
    ...formSizes.map((size) => growAndShrink(name, shape, size)),
    growAndShrink(name, shape, 40, 63),
    growAndShrink(name, shape, 40, 300),
    growAndShrink(name, shape, 12, 100_000),
    oneLongElement(name, shape, 65),
    oneLongElement(name, shape, 10_000),
  ]),
  ...insertions,
];

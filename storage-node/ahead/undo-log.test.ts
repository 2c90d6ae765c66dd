import { expect, test } from 'vitest';
import { giveBack, UndoLog, type UndoPart } from './undo-log.ts';

/** A log of writes whose undo puts back values of so many bytes. */
function written(log: UndoLog, text: string, sizes: readonly number[]): void {
  const key = Buffer.from('key');
  for (const size of sizes) {
    const value = Buffer.alloc(size, text);
    log.begin().value(1, key, 0, key.length, value, 0, size, 0);
  }
}

/** Sizes of the undo of each write, and the last byte of each. */
function seen({ bytes, starts }: UndoPart): [number, string][] {
  return starts.map((start, i) => {
    const end = starts[i + 1] ?? bytes.length;
    return [end - start, bytes.toString('latin1', end - 1, end)];
  });
}

test.each([
  ['small', [10, 20]],
  ['large', [3000, 2000, 70_000]],
])('%s parts stay as they are until they are given back', (_name, sizes) => {
  const log = new UndoLog();
  written(log, 'a', sizes);
  const first = log.take();
  expect(log.isEmpty).toBe(true);
  written(log, 'b', sizes);
  const second = log.take();
  expect(seen(first).map(([, byte]) => byte)).toEqual(sizes.map(() => 'a'));
  expect(seen(second).map(([, byte]) => byte)).toEqual(sizes.map(() => 'b'));
  expect(seen(first).map(([size]) => size)).toEqual(seen(second).map(([size]) => size));
});

test('memory that is given back is used again', () => {
  const log = new UndoLog();
  written(log, 'a', [5000]);
  const { memory, ...part } = log.take();
  expect(memory).toBeDefined();
  giveBack({ ...part, memory: memory! });
  // The next log begins in it.
  written(log, 'b', [5000]);
  log.take();
  written(log, 'c', [5000]);
  expect(log.take().memory).toBe(memory);
});

test('all of a log is put behind another one', () => {
  const [tick, entry] = [new UndoLog(), new UndoLog()];
  written(tick, 'a', [5]);
  written(entry, 'b', [6, 7]);
  entry.hide(9);
  tick.takeAll(entry);
  expect([entry.isEmpty, entry.bytes, tick.mark]).toEqual([true, 0, 3]);
  const part = tick.take();
  expect(seen(part).map(([, byte]) => byte)).toEqual(['a', 'b', 'b']);
  expect(part.hidden).toEqual([9]);
  written(entry, 'c', [8]);
  expect(seen(entry.takeFrom(0)).map(([, byte]) => byte)).toEqual(['c']);
});

test('what is taken from a mark on leaves what was before', () => {
  const log = new UndoLog();
  written(log, 'a', [5, 6]);
  const { mark } = log;
  written(log, 'b', [7]);
  expect(seen(log.takeFrom(mark)).map(([, byte]) => byte)).toEqual(['b']);
  expect(log.takeFrom(mark).starts).toEqual([]);
  expect([log.mark, seen(log.take()).length]).toEqual([2, 2]);
});

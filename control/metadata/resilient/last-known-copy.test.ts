import { mkdtempSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { DocumentChange, Json } from '../document-store.ts';
import { Replica } from '../replica.ts';
import { DamagedCopy, LastKnownCopy, readLastKnown } from './last-known-copy.ts';

let folder: string;
let path: string;
/** Outcome of each attempt to write. */
let outcomes: (Error | undefined)[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'polyrow-copy-'));
  path = join(folder, 'copy');
  outcomes = [];
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const change = (revision: number, id: string, body: Json | undefined): DocumentChange => {
  return { revision, collection: 'c', id, body };
};

/** A copy that is written as the documents change. */
class Keeper {
  readonly replica = new Replica();
  readonly copy = new LastKnownCopy(path, (outcome) => outcomes.push(outcome));
  readonly snapshot = () => this.replica.snapshot();

  change(...changes: DocumentChange[]): void {
    this.replica.apply(changes);
    this.copy.add(changes, this.snapshot);
  }
}

function known(): [revision: number, bodies: Record<string, Json>] {
  const { revision, documents } = readLastKnown(path)!.snapshot;
  return [revision, Object.fromEntries(documents.map(({ id, body }) => [id, body]))];
}

test('what was added is known again', async () => {
  expect(readLastKnown(path)).toBeUndefined();
  const keeper = new Keeper();
  keeper.change(change(1, 'a', 1), change(2, 'ü', { x: [null, '\n'] }));
  await keeper.copy.close();
  expect(known()).toEqual([2, { a: 1, ü: { x: [null, '\n'] } }]);

  const next = new Keeper();
  next.replica.replace(readLastKnown(path)!.snapshot);
  next.change(change(3, 'a', undefined));
  next.change(change(4, 'b', 2));
  await next.copy.close();
  expect(known()).toEqual([4, { ü: { x: [null, '\n'] }, b: 2 }]);
  expect(outcomes.filter(Boolean)).toEqual([]);
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test('the file does not grow without end', async () => {
  const keeper = new Keeper();
  const body = 'x'.repeat(10_000);
  for (let revision = 1; revision <= 1000; revision++) keeper.change(change(revision, 'a', body));
  await keeper.copy.close();
  expect(known()).toEqual([1000, { a: body }]);
  expect(statSync(path).size).toBeLessThan(2_500_000);
});

test('it says since when it was known to be all there is', async () => {
  const keeper = new Keeper();
  keeper.change(change(1, 'a', 1));
  await keeper.copy.close();
  utimesSync(path, 1000, 1000);
  expect(readLastKnown(path)!.confirmedAt).toBe(1_000_000);
  const next = new Keeper();
  next.replica.replace(readLastKnown(path)!.snapshot);
  const before = Date.now();
  next.copy.confirm(next.snapshot);
  await next.copy.close();
  expect(readLastKnown(path)!.confirmedAt).toBeGreaterThanOrEqual(before - 1000);
});

test('a disk that fails is told, and what it missed is written when it can be', async () => {
  rmSync(folder, { recursive: true });
  const keeper = new Keeper();
  keeper.change(change(1, 'a', 1));
  await keeper.copy.close();
  expect(outcomes).toMatchObject([{ code: 'ENOENT' }]);
});

describe('a file with', () => {
  async function written(): Promise<string> {
    const keeper = new Keeper();
    keeper.change(change(1, 'a', 1), change(2, 'b', 2));
    await keeper.copy.close();
    const next = new Keeper();
    next.replica.replace(readLastKnown(path)!.snapshot);
    outcomes = [];
    next.copy.replace(next.snapshot);
    await expect.poll(() => outcomes.length).toBe(1);
    next.change(change(3, 'a', 3));
    next.change(change(4, 'b', 4));
    await next.copy.close();
    expect(outcomes).toEqual([undefined, undefined, undefined]);
    return readFileSync(path, 'utf8');
  }

  test('a last line cut short lacks no more than that', async () => {
    const text = await written();
    const whole = text.lastIndexOf('\n', text.length - 2) + 1;
    for (let end = text.length - 1; end >= whole; end--) {
      writeFileSync(path, text.slice(0, end));
      expect(known(), `cut at ${end}`).toEqual([3, { a: 3, b: 2 }]);
    }
  });

  test('any other damage is not believed', async () => {
    const text = await written();
    const lastLine = text.lastIndexOf('\n', text.length - 2) + 1;
    for (let at = 0; at < lastLine; at++) {
      const other = text[at] === 'x' ? 'y' : 'x';
      writeFileSync(path, text.slice(0, at) + other + text.slice(at + 1));
      expect(readLastKnown.bind(undefined, path), `changed at ${at}`).toThrow(DamagedCopy);
    }
  });

  test('nothing in it is not believed', () => {
    writeFileSync(path, '');
    expect(() => readLastKnown(path)).toThrow(DamagedCopy);
  });
});

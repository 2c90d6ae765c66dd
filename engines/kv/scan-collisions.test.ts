// Keys and fields that a client chose so that they share one hash: a scan sees some of them in a step.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { hashBytes } from '../../universal-row/bytes.ts';
import { Shape } from '../../universal-row/rows.ts';
import { Trial } from '../conformance/trial.ts';
import { rowHash } from './key-layout.ts';
import { KvEngine } from './kv-engine.ts';
import { ScanCursors, sharedHashes } from './scan-cursors.ts';

const root = mkdtempSync(join(tmpdir(), 'polyrow-kv-scan-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
let directories = 0;

function open(): Promise<Trial> {
  return Trial.open({
    model: 'kv',
    supports: { rollback: true, reopen: true },
    create: (directory) => new KvEngine({ directory }),
    newDirectory: () => join(root, String(directories++)),
  });
}

const letters = 'abcdefghijklmnopqrstuvwxyz0123456789';
const blockLetters = 5;

/** FNV-1a goes on from the state before, so that pairs of blocks that lead to one state multiply. */
function advance(state: number, block: string): number {
  let h = state;
  for (let i = 0; i < block.length; i++) h = Math.imul(h ^ block.charCodeAt(i), 0x01000193);
  return h;
}

function blockOf(n: number): string {
  let text = '';
  for (let i = 0, rest = n; i < blockLetters; i++, rest = Math.floor(rest / letters.length)) {
    text += letters[rest % letters.length]!;
  }
  return text;
}

/** Two blocks after which the state is the same. */
function pairAt(state: number): [string, string] {
  const seen = new Map<number, string>();
  for (let n = 0; ; n++) {
    const block = blockOf(n * 7919);
    const next = advance(state, block);
    const other = seen.get(next);
    if (other !== undefined && other !== block) return [other, block];
    seen.set(next, block);
  }
}

/** `pairs` pairs: any choice of one block of each has the same `hashBytes`. */
function chain(pairs: number): [string, string][] {
  let state = 0x811c9dc5 ^ (pairs * blockLetters);
  return Array.from({ length: pairs }, () => {
    const pair = pairAt(state);
    state = advance(state, pair[0]);
    return pair;
  });
}

function choices(pairs: readonly [string, string][]): string[] {
  return pairs.reduce<string[]>(
    (heads, pair) => heads.flatMap((h) => pair.map((b) => h + b)),
    [''],
  );
}

const fields = choices(chain(8));

/**
 * Keys of one `rowHash`, which has 16 bits more: of 2^20 choices of one block of each pair, all of one `hashBytes`, those of
 * the most frequent value. They were searched for by walking all choices; a digit of the number, from the lowest, is a choice.
 */
function collidingKeys(): string[] {
  const first = 'hnhml 240ax wjq3p l3z7c b4rto 0zbgn vysq7 y4o3u';
  const cycle = 'id6tj 0xhz3 mpys8 cdwmn 1y6hf hkxn1 2owjf 7f2q4 3w3q4 mmmyb kar3m p8u7z'.split(
    ' ',
  );
  const blocks = [...first.split(' '), ...cycle, ...cycle, ...cycle].slice(0, 40);
  const chosen =
    '4qog ku1c csw kxm8 5nns a6qg 3rtw bw38 cih8 2zzg 7mgs 8h02 80g6 clsm l5py 4fbi a09a 2ram eyzl 97ex j1g5 3gt1 fw4z ea3';
  return chosen.split(' ').map((text) => {
    const number = Number.parseInt(text, 36);
    return Array.from({ length: 20 }, (_, i) => blocks[2 * i + ((number >>> i) & 1)]!).join('');
  });
}

test('the fields collide', () => {
  const hashes = fields.map((name) => hashBytes(Buffer.from(name), 0, name.length));
  expect(new Set(fields).size).toBe(256);
  expect(new Set(hashes).size).toBe(1);
});

describe('fields of one hash', () => {
  for (const [name, shape] of [
    ['map', Shape.map],
    ['set', Shape.set],
    ['ranked row', Shape.ranked],
  ] as const) {
    test(`a scan of a ${name} sees some at a time, each once`, async () => {
      const trial = await open();
      const others = Array.from({ length: 100 }, (_, n) => `other ${n}`);
      await trial.run((v) => {
        for (const field of [...fields, ...others]) {
          if (shape === Shape.map) v.putField('k', field, 'v');
          else if (shape === Shape.set) v.addMember('k', field);
          else v.putScore('k', field, 1);
        }
      });
      const seen: string[] = [];
      let cursor = 0;
      do {
        const from = cursor;
        const step = await trial.read((v) => {
          const found: string[] = [];
          const next = v.table.scanFields(v.row('k'), from, 10, (fb, fs, fn) => {
            found.push(fb.toString('latin1', fs, fs + fn));
          });
          return { found, next };
        });
        expect(step.found.length).toBeLessThanOrEqual(10 + sharedHashes);
        seen.push(...step.found);
        cursor = step.next;
      } while (cursor !== 0);
      expect(seen.toSorted()).toEqual([...fields, ...others].toSorted());
      await trial.engine.close();
    });
  }
});

test('a scan of rows of one hash sees some at a time, each once', async () => {
  const keys = collidingKeys();
  expect(keys.length).toBeGreaterThan(sharedHashes + 2);
  expect(new Set(keys.map((key) => rowHash(Buffer.from(key), 0, key.length))).size).toBe(1);
  const trial = await open();
  await trial.run((v) => {
    for (const key of keys) v.put(key, 'v');
    for (let n = 0; n < 50; n++) v.put(`other ${n}`, 'v');
  });
  const seen: string[] = [];
  let cursor = 0;
  let most = 0;
  do {
    const { found, next } = await trial.scan(0, cursor, 1);
    most = Math.max(most, found.length);
    seen.push(...found);
    cursor = next;
  } while (cursor !== 0);
  expect(most).toBe(1 + sharedHashes);
  expect(seen.toSorted()).toEqual(
    [...keys, ...Array.from({ length: 50 }, (_, n) => `other ${n}`)].toSorted(),
  );
  await trial.engine.close();
});

test('places are remembered for their row, the newest of them', () => {
  const cursors = new ScanCursors();
  const first = cursors.remember('a', 7);
  expect(cursors.keyOf(first, 7)).toBe('a');
  expect(cursors.keyOf(first)).toBeUndefined();
  expect(cursors.keyOf(first + 1, 7)).toBeUndefined();
  for (let n = 0; n < 4096; n++) cursors.remember('b');
  expect(cursors.keyOf(first, 7)).toBeUndefined();
  expect(cursors.keyOf(first + 1)).toBe('b');
});

import {
  appendFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { FaultyDisk } from '../../storage-node/disk/faulty-disk.ts';
import { realDisk } from '../../storage-node/disk/real-disk.ts';
import { seededRng } from '../../storage-node/replicator/group/log-fixture.ts';
import { LineLog, type LogRecord } from './line-log.ts';

interface Note extends LogRecord {
  text: string;
}

let directory: string;
let log: LineLog<Note>;
let reports: string[];

function open(fileBytes = 1000, files = 3): void {
  const report = (message: string): void => void reports.push(message);
  log = LineLog.open({
    disk: realDisk,
    directory,
    name: 'note',
    fileBytes,
    files,
    sync: true,
    report,
  });
}

test('after a crash while room was made no record is lost or read twice', async () => {
  for (let seq = 1; seq <= 40; seq++) await log.append({ seq, text: 'x'.repeat(90) });
  await log.close();
  const names = readdirSync(directory).filter((name) => name.endsWith('.log'));
  const before = (): number[] => log.read(0, 100).map(({ seq }) => seq);
  open();
  const all = before();
  await log.close();
  // Two files were put in the place of the first, and the second was not removed yet.
  const [first, second] = names.map((name) => join(directory, name));
  appendFileSync(first!, readFileSync(second!));
  open();
  expect(before()).toEqual(all);
  expect(log.last(100).map(({ seq }) => seq)).toEqual(all);
});

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'polyrow-lines-'));
  reports = [];
  open();
});
afterEach(async () => {
  await log.close();
  rmSync(directory, { recursive: true });
});

async function append(from: number, to: number): Promise<void> {
  for (let seq = from; seq <= to; seq++) await log.append({ seq, text: `ü ${seq}\n` });
}

const numbers = (records: readonly Note[]): number[] => records.map(({ seq }) => seq);

async function reopen(): Promise<void> {
  await log.close();
  open();
}

test('records come back in order, from any number on, after a reopen too', async () => {
  await append(1, 5);
  await reopen();
  expect(log.lastSeq).toBe(5);
  expect(log.read(0, 100)[4]).toEqual({ seq: 5, text: 'ü 5\n' });
  await append(6, 7);
  expect(numbers(log.read(0, 100))).toEqual([1, 2, 3, 4, 5, 6, 7]);
  expect(numbers(log.read(2, 3))).toEqual([3, 4, 5]);
  expect(numbers(log.read(7, 3))).toEqual([]);
  expect(numbers(log.last(2))).toEqual([6, 7]);
  expect(numbers(log.last(2, '"seq":3,'))).toEqual([3]);
  expect(numbers(log.read(3, 9, 'ü 6'))).toEqual([6]);
  expect(numbers(log.read(0, 9, 'ö'))).toEqual([]);
});

test('numbers may have gaps, and go up', async () => {
  for (const seq of [3, 10, 400]) await log.append({ seq, text: '' });
  expect(numbers(log.read(3, 10))).toEqual([10, 400]);
  await expect(log.append({ seq: 400, text: '' })).rejects.toThrow('comes too late');
});

test('the oldest files go', async () => {
  open(100, 3);
  await append(1, 40);
  expect(readdirSync(directory)).toHaveLength(3);
  const kept = numbers(log.read(0, 100));
  expect(kept.at(-1)).toBe(40);
  expect(kept[0]).toBeGreaterThan(30);
  expect(kept).toEqual(kept.map((_, i) => kept[0]! + i));
  expect(numbers(log.last(100))).toEqual(kept);
});

test('many at once are all there', async () => {
  open(500, 100);
  await Promise.all(
    Array.from({ length: 50 }, (_, i) => log.append({ seq: i + 1, text: 'x'.repeat(i) })),
  );
  expect(log.read(0, 100)).toHaveLength(50);
});

test('a torn line is cut off at the next start', async () => {
  await append(1, 3);
  await log.close();
  const [file] = readdirSync(directory);
  appendFileSync(join(directory, file!), '0123abcd {"seq":4,"te');
  open();
  expect(log.lastSeq).toBe(3);
  await append(4, 4);
  expect(numbers(log.read(0, 10))).toEqual([1, 2, 3, 4]);
  expect(reports).toEqual([]);
});

test('a damaged line is reported once and left out', async () => {
  await append(1, 3);
  await log.close();
  const file = join(directory, readdirSync(directory)[0]!);
  writeFileSync(file, readFileSync(file, 'utf8').replace('"seq":2', '"seq":7'));
  open();
  expect(numbers(log.read(0, 10))).toEqual([1, 3]);
  log.read(0, 10);
  expect(reports).toEqual([`${file} is damaged at byte 35: what cannot be read is left out`]);
});

describe('a sync that fails', () => {
  let disk: FaultyDisk;
  let notes: LineLog<Note>;
  let failures: number;

  function openOn(fileBytes = 100_000): void {
    notes = LineLog.open({
      disk,
      directory: '/notes',
      name: 'note',
      fileBytes,
      files: 9,
      sync: true,
    });
  }

  /** The next syncs fail, so many of them, after the first `well`. */
  function failSyncs(count: number, well = 0): void {
    let left = well;
    disk.fault = (operation) => {
      if (operation !== 'sync' || left-- > 0) return undefined;
      if (++failures === count) disk.fault = () => undefined;
      return 'EIO';
    };
  }

  /** Those of the records that are acknowledged. */
  async function appendAll(...records: Note[]): Promise<number[]> {
    const outcomes = await Promise.allSettled(records.map((record) => notes.append(record)));
    return records.flatMap(({ seq }, i) => (outcomes[i]!.status === 'fulfilled' ? [seq] : []));
  }

  // A power cut undoes what was given up in half of the cases.
  test.each(Array.from({ length: 20 }, (_, i) => i + 1))(
    'takes nothing along that is acknowledged (%i)',
    async (seed) => {
      disk = new FaultyDisk({ rng: seededRng(seed) });
      failures = 0;
      openOn(seed % 4 === 3 ? 1500 : undefined);
      const text = 'x'.repeat(seed % 5 === 0 ? 512 - 30 : 700);
      const kept = await appendAll({ seq: 1, text });
      // At the beginning of a sync, at its end, or at the beginning of the next one.
      failSyncs(1, seed % 3);
      disk.stallSyncs();
      const first = appendAll({ seq: 2, text });
      await new Promise(setImmediate);
      const others = appendAll({ seq: 3, text }, { seq: 4, text });
      await new Promise(setImmediate);
      disk.resumeSyncs();
      kept.push(...(await first), ...(await others));
      expect(failures).toBe(1);
      kept.push(...(await appendAll({ seq: 5, text })));
      expect(kept).toContain(5);
      if (seed % 4 === 0) {
        // The next process cannot know which records were given up.
        disk = disk.kill();
        openOn();
        kept.push(...(await appendAll({ seq: 6, text })));
      }
      disk = disk.crash();
      openOn();
      expect(numbers(notes.read(0, 10))).toEqual(expect.arrayContaining(kept));
    },
  );
});

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
import { afterEach, beforeEach, expect, test } from 'vitest';
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

test('what is written after a failed sync survives a power cut, beside what came before', async () => {
  for (let seed = 1; seed <= 20; seed++) {
    let disk = new FaultyDisk({ rng: seededRng(seed) });
    const openOn = (): LineLog<Note> =>
      LineLog.open({
        disk,
        directory: '/notes',
        name: 'note',
        fileBytes: 100_000,
        files: 9,
        sync: true,
      });
    const text = 'x'.repeat(2000);
    let notes = openOn();
    await notes.append({ seq: 1, text });
    disk.fault = (operation) => (operation === 'sync' ? 'EIO' : undefined);
    const failed = await Promise.allSettled([2, 3].map((seq) => notes.append({ seq, text })));
    expect(failed.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    disk.fault = () => undefined;
    await notes.append({ seq: 4, text });
    if (seed % 2 === 0) {
      // The next process cannot know which records were given up.
      disk = disk.kill();
      notes = openOn();
      await notes.append({ seq: 5, text });
    }
    disk = disk.crash();
    const found = numbers(openOn().read(0, 10));
    expect(found).toEqual(expect.arrayContaining(seed % 2 === 0 ? [1, 4, 5] : [1, 4]));
  }
});

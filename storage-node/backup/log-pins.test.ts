import { expect, test } from 'vitest';
import { LogFixture } from '../replicator/group/log-fixture.ts';
import { LogPins } from './log-pins.ts';

const directory = '/pins';

async function opened(f: LogFixture, options: { maxBytes?: number } = {}): Promise<LogPins> {
  f.disk.makeDirectory(directory);
  return LogPins.open({
    disk: f.disk,
    directory,
    log: f.log,
    maxBytes: options.maxBytes ?? 1 << 30,
    holdsLog: true,
    report: () => {},
  });
}

function pin(f: LogFixture, pins: LogPins, chain: string, backup = chain): void {
  const { volume, lastIndex, appendedLsn } = f.log.status();
  pins.set({ chain, backup, point: { volume, index: lastIndex }, lsn: appendedLsn });
}

const many = (n: number) => Array.from({ length: n }, (_, i) => `${i}`.padEnd(200, 'x'));

async function readBack(f: LogFixture, after: number, to: number): Promise<string[]> {
  const entries: string[] = [];
  for await (const { buf, start, end } of f.log.readBack(after, to)) {
    entries.push(buf.toString('latin1', start, end));
  }
  return entries;
}

test('entries behind a pin stay, and can be read back, after a restart as well', async () => {
  const f = new LogFixture();
  await f.open();
  const pins = await opened(f);
  for (const text of many(100)) await f.write(text);
  pin(f, pins, 'a');
  const later = many(300).map((text) => `later ${text}`);
  for (const text of later) await f.write(text);
  f.log.truncate(400);
  await f.log.close();
  await f.open({ appliedIndex: 400 });
  const again = await opened(f);
  const point = again.find('a', 'a');
  expect(point).toMatchObject({ index: 100 });
  expect(again.find('a', 'b')).toBe('the last backup that the server knows of is a');
  expect(await readBack(f, 100, 400)).toEqual(later);
  expect(await readBack(f, 250, 252)).toEqual(later.slice(150, 152));
  expect(await readBack(f, 400, 400)).toEqual([]);
});

test('entries are read while more is written, and segments go', async () => {
  const f = new LogFixture();
  await f.open();
  const texts = many(400);
  for (const text of texts) await f.write(text);
  f.log.keepAfter = 0;
  const entries: string[] = [];
  for await (const { buf, start, end } of f.log.readBack(10, 400)) {
    entries.push(buf.toString('latin1', start, end));
    if (entries.length % 50 === 0) await f.write('more');
    if (entries.length === 200) f.log.truncate(400);
  }
  expect(entries).toEqual(texts.slice(10));
  f.log.keepAfter = Infinity;
  f.log.truncate(400);
  await expect.poll(() => f.log.status().firstIndex).toBeGreaterThan(10);
  await expect(readBack(f, 10, 400)).rejects.toThrow('no entry');
});

test('the oldest pin holds the log, and what nobody needs goes', async () => {
  const f = new LogFixture();
  await f.open();
  const pins = await opened(f);
  await f.write('1');
  pin(f, pins, 'a');
  await f.write('2');
  pin(f, pins, 'b');
  expect(f.log.keepAfter).toBe(1);
  await f.write('3');
  pin(f, pins, 'a', 'next');
  expect(f.log.keepAfter).toBe(2);
  const letGo = pins.hold(1);
  expect(f.log.keepAfter).toBe(1);
  letGo();
  pins.clear();
  expect(f.log.keepAfter).toBe(Infinity);
});

test('a pin goes when too much was written since, and when there are many', async () => {
  const f = new LogFixture();
  await f.open();
  const pins = await opened(f, { maxBytes: 5000 });
  pin(f, pins, 'a');
  for (const text of many(10)) await f.write(text);
  expect(pins.find('a', 'a')).toMatchObject({ index: 0 });
  for (const text of many(30)) await f.write(text);
  expect(pins.find('a', 'a')).toBe('the log since the last backup is kept no more');
  for (let i = 0; i < 20; i++) pin(f, pins, `chain ${i}`);
  expect(pins.find('chain 3', 'chain 3')).toContain('kept no more');
  expect(pins.find('chain 4', 'chain 4')).toMatchObject({ index: 40 });
});

test('a log that was lost, or lost its end, has no pins', async () => {
  const f = new LogFixture({ fsync: 'no' });
  await f.open();
  let pins = await opened(f);
  await f.write('1');
  await new Promise((resolve) => setTimeout(resolve, 20));
  for (const text of many(50)) f.tick(text);
  pin(f, pins, 'a');
  // The pin is synced; the entries it is about are not.
  f.crash();
  await f.open();
  pins = await opened(f);
  expect(f.log.lastIndex).toBeLessThan(51);
  expect(pins.find('a', 'a')).toContain('kept no more');
  // Not even when the log has come as far again.
  for (const text of many(60)) await f.write(text);
  await f.log.close();
  await f.open();
  pins = await opened(f);
  expect(pins.find('a', 'a')).toContain('kept no more');
  pin(f, pins, 'b');
  await f.log.close();
  for (const name of f.segments()) f.disk.remove(f.path(name));
  await f.open({ acceptLoss: true });
  expect((await opened(f)).find('b', 'b')).toContain('kept no more');
});

test('a damaged file of pins costs a full backup and nothing else', async () => {
  const f = new LogFixture();
  await f.open();
  pin(f, await opened(f), 'a');
  const file = f.disk.open(`${directory}/backup-pins`, 'append');
  file.write(Buffer.from('x'), 0, 1, 5);
  file.close();
  expect((await opened(f)).find('a', 'a')).toContain('kept no more');
});

import { expect, test } from 'vitest';
import { FaultyDisk } from './faulty-disk.ts';

/** A disk whose every doubt ends one way: 0 forgets what it can, just below 1 keeps it. */
const disk = (outcome: number, capacityBytes = Infinity) =>
  new FaultyDisk({ rng: { next: () => outcome }, capacityBytes });
const forgets = 0;
const text = (bytes: string) => Buffer.from(bytes);

test('what was synced survives a power cut, what was not is in doubt', () => {
  const d = disk(forgets);
  const file = d.open('/d/f', 'create');
  file.write(text('safe'), 0, 4, 0);
  file.syncNow();
  d.syncDirectory('/d');
  file.write(text('gone'), 0, 4, 4);
  expect(d.kill().contents('/d/f').toString()).toBe('safegone');
});

test('unsynced writes are forgotten sector by sector', () => {
  let bits = 0;
  const d = new FaultyDisk({ rng: { next: () => (bits++ % 2 === 0 ? 0 : 0.999) } });
  const file = d.open('/d/f', 'create');
  file.write(Buffer.alloc(4096, 'a'), 0, 4096, 0);
  file.syncNow();
  d.syncDirectory('/d');
  file.write(Buffer.alloc(4096, 'b'), 0, 4096, 0);
  const after = d.crash().contents('/d/f').toString('latin1');
  const sectors = after.match(/.{512}/g)!.map((s) => new Set(s));
  expect(sectors.every((s) => s.size === 1)).toBe(true);
  expect(new Set(after)).toEqual(new Set(['a', 'b']));
});

test('a name is only safe once its directory is synced', () => {
  const named = (synced: boolean) => {
    const d = disk(0.999);
    d.open('/d/f', 'create').syncNow();
    d.syncDirectory('/d');
    d.rename('/d/f', '/d/g');
    if (synced) d.syncDirectory('/d');
    return d.crash().list('/d');
  };
  expect(named(true)).toEqual(['g']);
  expect(named(false)).toEqual(['f']);
});

test('a full disk takes a part, and gives room back when a file goes', () => {
  const d = disk(0.5, 1000);
  d.open('/d/a', 'create').write(Buffer.alloc(600), 0, 600, 0);
  const file = d.open('/d/b', 'create');
  expect(() => file.write(Buffer.alloc(600), 0, 600, 0)).toThrow(
    expect.objectContaining({ code: 'ENOSPC' }),
  );
  expect(file.size()).toBe(300);
  d.remove('/d/a');
  file.write(Buffer.alloc(600), 0, 600, 0);
  expect(d.freeBytes()).toBe(400);
});

test('a sync covers what was written before it, and no more', async () => {
  const d = disk(forgets);
  const file = d.open('/d/f', 'create');
  d.syncDirectory('/d');
  file.write(text('one'), 0, 3, 0);
  d.stallSyncs();
  const sync = file.sync();
  file.write(text('two'), 0, 3, 3);
  d.resumeSyncs();
  await sync;
  expect(d.crash().contents('/d/f').toString()).toBe('one');
  expect(() => file.write(text('x'), 0, 1, 0)).toThrow('EIO');
});

test('what a failed sync was to write is read, and not made durable by later syncs', () => {
  const d = disk(forgets);
  const file = d.open('/d/f', 'create');
  d.syncDirectory('/d');
  file.write(text('old'), 0, 3, 0);
  file.syncNow();
  file.write(text('new'), 0, 3, 0);
  file.write(text('far'), 0, 3, 1000);
  d.fault = (operation) => (operation === 'sync' ? 'EIO' : undefined);
  expect(() => file.syncNow()).toThrow('EIO');
  d.fault = () => undefined;
  file.syncNow();
  const read = Buffer.alloc(3);
  file.read(read, 0, 3, 1000);
  expect(read.toString()).toBe('far');
  file.write(text('again'), 0, 5, 998);
  file.syncNow();
  const bytes = d.crash().contents('/d/f');
  expect(bytes.toString('latin1', 0, 3)).toBe('old');
  expect(bytes.toString('latin1', 998)).toBe('again');
});

test.each([0, 0.999])(
  'a failure is told to one of two syncs that overlap (%d)',
  async (outcome) => {
    const d = disk(outcome);
    const file = d.open('/d/f', 'create');
    d.syncDirectory('/d');
    file.write(text('lost'), 0, 4, 0);
    d.stallSyncs();
    const first = file.sync().then(
      () => 'succeeded',
      () => 'failed',
    );
    d.fault = (operation) => (operation === 'sync' ? 'EIO' : undefined);
    let second = 'succeeded';
    try {
      file.syncNow();
    } catch {
      second = 'failed';
    }
    d.fault = () => undefined;
    d.resumeSyncs();
    expect([await first, second].sort()).toEqual(['failed', 'succeeded']);
    expect(second).toBe(outcome === 0 ? 'failed' : 'succeeded');
  },
);

test('what a failed sync gave up may leave memory, unless it was written again', () => {
  const d = disk(forgets);
  const file = d.open('/d/f', 'create');
  file.write(Buffer.alloc(1536, 'a'), 0, 1536, 0);
  file.syncNow();
  file.write(Buffer.alloc(1636, 'b'), 0, 1636, 0);
  d.fault = (operation) => (operation === 'sync' ? 'EIO' : undefined);
  expect(() => file.syncNow()).toThrow('EIO');
  d.fault = () => undefined;
  file.write(text('c'), 0, 1, 600);
  const bytes = d.evict().contents('/d/f').toString('latin1');
  expect(bytes.length).toBe(1636);
  expect(bytes.slice(0, 512)).toBe('a'.repeat(512));
  expect(bytes.slice(512, 1024)).toBe(`${'b'.repeat(88)}c${'b'.repeat(423)}`);
  expect(bytes.slice(1024)).toBe('a'.repeat(512) + '\0'.repeat(100));
});

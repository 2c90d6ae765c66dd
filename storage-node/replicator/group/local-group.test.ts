import { syncBuiltinESMExports } from 'node:module';
import zlib from 'node:zlib';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { RecordBatchWriter } from '../../../universal-row/record-batch.ts';
import { diskError } from '../../disk/faulty-disk.ts';
import { opsRoomBytes } from '../partition-log.ts';
import { getU32 } from '../wal/format.ts';
import { LogFixture } from './log-fixture.ts';

/** Bytes of the longest range whose checksum was taken in one go. */
const summed = { longest: 0 };
const { crc32 } = zlib;
zlib.crc32 = (bytes, seed) => {
  summed.longest = Math.max(summed.longest, Buffer.byteLength(bytes));
  return crc32(bytes, seed);
};
syncBuiltinESMExports();

afterEach(() => {
  vi.useRealTimers();
});

const numbered = (count: number, bytes = 100) =>
  Array.from({ length: count }, (_, i) => `${i + 1}:`.padEnd(bytes, 'x'));

describe('entries', () => {
  test('come back in order after an orderly shutdown', async () => {
    const f = new LogFixture();
    await f.open();
    expect(f.entry('a')).toBe(1);
    expect(f.entry('b')).toBe(2);
    f.log.endTick();
    await f.write('c');
    await f.log.close();

    await f.open();
    expect([...f.replayed]).toEqual([
      [1, 'a'],
      [2, 'b'],
      [3, 'c'],
    ]);
    expect(f.log.lastIndex).toBe(3);
    expect(f.log.status().cleanStart).toBe(true);
  });

  test('that write nothing, or are abandoned, are none', async () => {
    const f = new LogFixture();
    await f.open();
    f.log.begin();
    expect(f.log.end()).toBe(0);
    f.entry('a');
    f.log.begin();
    f.log.writer.clear(0);
    f.log.abandon();
    f.log.begin();
    expect(f.log.end()).toBe(0);
    expect(f.entry('b')).toBe(2);
    await f.safe(f.log.endTick());
    f.crash();
    await f.open();
    expect([...f.replayed.values()]).toEqual(['a', 'b']);
  });

  test('of a tick make one frame and one write', async () => {
    const f = new LogFixture();
    await f.open();
    const frames = f.log.status().frames;
    const writes = f.disk.calls.get('write')!;
    f.tick('a', 'b', 'c');
    expect(f.log.status().frames).toBe(frames + 1);
    expect(f.disk.calls.get('write')).toBe(writes + 1);
  });

  test('that an engine has are not applied again', async () => {
    const f = new LogFixture();
    await f.open();
    await f.write('a', 'b', 'c');
    f.crash();
    await f.open({ appliedIndex: 2 });
    expect([...f.replayed]).toEqual([[3, 'c']]);
  });

  test('are applied one after the other when applying takes time', async () => {
    const f = new LogFixture();
    await f.open();
    await f.write(...numbered(20));
    await f.write(...numbered(20));
    f.kill();
    const seen: number[] = [];
    let running = 0;
    await f.open({
      apply: async (_buf, _start, _end, index) => {
        expect(++running).toBe(1);
        if (index % 3 === 0) await new Promise(setImmediate);
        seen.push(index);
        running--;
      },
    });
    expect(seen).toEqual(Array.from({ length: 40 }, (_, i) => i + 1));
  });

  test('beyond the log that an engine has outlive it', async () => {
    const f = new LogFixture({ fsync: 'no' });
    await f.open();
    await f.write('a');
    f.kill();
    await f.open({ appliedIndex: 5 });
    expect(f.log.lastIndex).toBe(5);
    expect(f.entry('six')).toBe(6);
    f.log.endTick();
    await f.log.close();
    await f.open({ appliedIndex: 5 });
    expect([...f.replayed]).toEqual([[6, 'six']]);
  });

  test('larger than a segment, than the writer and than a window survive', async () => {
    const f = new LogFixture();
    await f.open();
    const huge = 'h'.repeat(9 * 1024 * 1024);
    const first = f.entry('before');
    f.entry(huge);
    f.entry('after');
    await f.safe(f.log.endTick());
    expect(f.log.writer.buf.length).toBe(64 * 1024);
    f.crash();
    await f.open();
    expect(f.replayed.get(first + 1) === huge).toBe(true);
    expect([f.replayed.get(1), f.replayed.get(3)]).toEqual(['before', 'after']);
  });

  test('of one tick may be more than a frame can count', async () => {
    const f = new LogFixture({ segmentBytes: 1 << 20 });
    await f.open();
    for (let i = 0; i < 70_000; i++) f.entry('e');
    await f.safe(f.log.endTick());
    f.crash();
    await f.open();
    expect(f.replayed.size).toBe(70_000);
  });
});

describe('fsync', () => {
  test('always: one at a time, and the next covers all that queued meanwhile', async () => {
    const f = new LogFixture();
    await f.open();
    const syncs = f.disk.calls.get('sync')!;
    f.disk.stallSyncs();
    const order: number[] = [];
    for (let i = 1; i <= 5; i++) f.log.whenSettled(f.tick(`t${i}`), () => order.push(i));
    await new Promise(setImmediate);
    expect(order).toEqual([]);
    expect(f.disk.calls.get('sync')).toBe(syncs + 1);
    f.disk.resumeSyncs();
    await expect.poll(() => order).toEqual([1, 2, 3, 4, 5]);
    expect(f.disk.calls.get('sync')).toBe(syncs + 2);
    expect(f.log.endTick()).toBe(-1);
  });

  test('always: a tick of reads waits for what it may have seen', async () => {
    const f = new LogFixture();
    await f.open();
    f.disk.stallSyncs();
    const position = f.tick('a');
    expect(f.log.endTick()).toBe(position);
    f.disk.resumeSyncs();
    await f.safe(position);
    expect(f.log.endTick()).toBe(-1);
  });

  test('everysec: once a second while something is written, then a mark, then no timer', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const f = new LogFixture({ fsync: 'everysec' });
    await f.open();
    expect(vi.getTimerCount()).toBe(0);
    expect(f.tick('a')).toBe(-1);
    f.tick('b');
    expect(f.log.status().durableLsn).toBeLessThan(f.log.status().appendedLsn);
    await vi.advanceTimersByTimeAsync(1000);
    await expect.poll(() => f.log.status().durableLsn).toBe(f.log.status().appendedLsn);
    expect(f.log.status().fsyncs).toBe(1);
    const size = f.disk.contents(f.path(f.segments()[0]!)).length;
    await vi.advanceTimersByTimeAsync(1000);
    expect(f.disk.contents(f.path(f.segments()[0]!)).length).toBe(size + 48);
    expect(vi.getTimerCount()).toBe(0);
    expect(f.log.endTick()).toBe(-1);
  });

  test('everysec: replies wait once the disk is two seconds behind', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    let now = 0;
    const f = new LogFixture({
      fsync: 'everysec',
      clock: { now: () => now, monotonic: () => now },
    });
    await f.open();
    f.disk.stallSyncs();
    f.tick('a');
    now = 1000;
    await vi.advanceTimersByTimeAsync(1000);
    expect(f.tick('b')).toBe(-1);
    now = 2500;
    const position = f.tick('c');
    expect(position).toBeGreaterThan(0);
    expect(f.log.status().pendingFsyncMs).toBe(1500);
    expect(f.log.endTick()).toBe(-1);
    let replied = false;
    f.log.whenSettled(position, () => {
      replied = true;
    });
    expect(replied).toBe(false);
    f.disk.resumeSyncs();
    await expect.poll(() => replied).toBe(true);
    expect(f.log.status().delayedTicks).toBe(1);
  });

  test('no: never, but full segments are synced', async () => {
    const f = new LogFixture({ fsync: 'no' });
    await f.open();
    f.tick('a');
    await new Promise(setImmediate);
    expect(f.log.status().fsyncs).toBe(0);
    for (const payload of numbered(60)) f.tick(payload);
    await expect.poll(() => f.segments().every((name) => !name.endsWith('.new'))).toBe(true);
    expect(f.log.status().fsyncs).toBeGreaterThan(0);
  });

  test('a relaxed policy lets go of those who wait, a stricter one makes them wait', async () => {
    const f = new LogFixture();
    await f.open();
    f.disk.stallSyncs();
    let replied = false;
    f.log.whenSettled(f.tick('a'), () => {
      replied = true;
    });
    expect(replied).toBe(false);
    f.log.fsyncPolicy = 'everysec';
    expect(replied).toBe(true);
    f.log.fsyncPolicy = 'always';
    expect(f.log.endTick()).toBeGreaterThan(0);
    f.disk.resumeSyncs();
    await f.log.close();
  });

  test('one that fails ends the process, and nobody is answered', async () => {
    const f = new LogFixture();
    await f.open();
    f.disk.fault = (operation) => (operation === 'sync' ? 'EIO' : undefined);
    let replied = false;
    f.log.whenSettled(f.tick('a'), () => {
      replied = true;
    });
    await expect.poll(() => f.fatal?.message).toContain('EIO');
    f.disk.fault = () => undefined;
    await new Promise(setImmediate);
    expect(replied).toBe(false);
    await expect(f.log.sync()).rejects.toThrow('EIO');
    expect(() => f.log.endTick()).toThrow('EIO');
    expect(f.log.failure).toBe(f.fatal);
    await f.log.close();
  });

  const large = 'b'.repeat(3000);

  /** With a synced entry and a large one, whose sync has failed; the process is gone. */
  async function failedSync(seed: number, options = {}): Promise<LogFixture> {
    const f = new LogFixture({ seed, ...options });
    await f.open();
    await f.write('a');
    f.disk.fault = (operation) => (operation === 'sync' ? 'EIO' : undefined);
    f.tick(large);
    await expect.poll(() => f.fatal?.message).toContain('EIO');
    f.disk.fault = () => undefined;
    f.kill();
    return f;
  }

  test('what one that failed has given up is written again at the next start, if it can still be read', async () => {
    const found = new Set<string>();
    // A power cut undoes each sector that was given up in half of the cases.
    for (let seed = 1; seed <= 20; seed++) {
      const f = await failedSync(seed);
      await f.open();
      const replayed = [...f.replayed.values()];
      found.add(replayed.join());
      await f.write('c');
      f.crash();
      await f.open();
      expect([...f.replayed.values()]).toEqual([...replayed, 'c']);
      await f.log.close();
    }
    expect([...found].sort()).toEqual(['a', `a,${large}`]);
  });

  test('what one that failed has given up has the room of the ballast where it is written again elsewhere', async () => {
    const copiesOnWrite = (f: LogFixture): void => {
      f.disk.fault = (operation, path) => {
        const isFull = f.disk.exists('/log/ballast') || f.options.ballastBytes === undefined;
        const isOfLog =
          path.includes('seg-') && (operation === 'write' || operation === 'truncate');
        return isOfLog && isFull ? 'ENOSPC' : undefined;
      };
    };
    const full = await failedSync(1);
    copiesOnWrite(full);
    await expect(full.open()).rejects.toThrow('disk full: the last');
    for (let seed = 1; seed <= 20; seed++) {
      const f = await failedSync(seed, { ballastBytes: 65536 });
      copiesOnWrite(f);
      await f.open();
      const replayed = [...f.replayed.values()];
      f.disk.fault = () => undefined;
      f.crash();
      await f.open();
      expect([...f.replayed.values()]).toEqual(replayed);
      await f.log.close();
    }
  });

  test('what one that failed has given up may leave memory during the next start, which then fails', async () => {
    let failures = 0;
    for (let seed = 1; seed <= 40; seed++) {
      const f = await failedSync(seed);
      let opens = 0;
      f.disk.fault = (operation, path) => {
        // For its size, to be read, and to be written again.
        if (operation === 'open' && path.endsWith('seg-0000000001') && ++opens === 3)
          f.disk.evict();
        return undefined;
      };
      try {
        await f.open();
      } catch (error) {
        expect((error as Error).message).toContain('lost bytes');
        failures++;
        f.kill();
        await f.open();
      }
      const replayed = [...f.replayed.values()];
      await f.write('c');
      f.crash();
      await f.open();
      expect([...f.replayed.values()]).toEqual([...replayed, 'c']);
      await f.log.close();
    }
    expect(failures).toBeGreaterThan(0);
  });

  test('a write that fails for another reason than room is fatal', async () => {
    const f = new LogFixture();
    await f.open();
    f.disk.fault = (operation) => (operation === 'write' ? 'EIO' : undefined);
    expect(() => f.tick('a')).toThrow('EIO');
    expect(f.fatal?.message).toContain('EIO');
  });
});

describe('segments', () => {
  test('are begun without waiting for the disk, and named once their predecessor is synced', async () => {
    const f = new LogFixture();
    await f.open();
    f.disk.stallSyncs();
    let position = 0;
    for (const payload of numbered(60)) position = f.tick(payload);
    expect(f.segments()).toEqual(['seg-0000000001', 'seg-0000000002.new', 'seg-0000000003.new']);
    f.disk.resumeSyncs();
    await f.safe(position);
    await vi.waitFor(() =>
      expect(f.segments()).toEqual(['seg-0000000001', 'seg-0000000002', 'seg-0000000003']),
    );
    f.crash();
    await f.open();
    expect([...f.replayed.values()]).toEqual(numbered(60));
  });

  test('go once an engine holds what is in them, and the log still opens', async () => {
    const f = new LogFixture();
    await f.open();
    for (const payload of numbered(200)) await f.write(payload);
    await new Promise(setImmediate);
    const before = f.segments().length;
    expect(before).toBeGreaterThan(5);
    f.log.truncate(120);
    await expect.poll(() => f.segments().length).toBeLessThan(before / 2 + 1);
    const { firstIndex, segments } = f.log.status();
    expect(firstIndex).toBeGreaterThan(80);
    expect(firstIndex).toBeLessThanOrEqual(121);
    expect(segments).toBe(f.segments().length);
    await f.write('synced after the checkpoint');
    f.crash();
    await f.open({ appliedIndex: 120 });
    expect([...f.replayed.keys()]).toEqual(Array.from({ length: 81 }, (_, i) => 121 + i));
    expect(f.log.status().checkpointIndex).toBe(120);
    f.log.truncate(201);
    await f.write('more');
    await expect.poll(() => f.segments().length).toBeLessThanOrEqual(2);
  });

  test('a gap between engine and log is refused', async () => {
    const f = new LogFixture();
    await f.open();
    for (const payload of numbered(200)) await f.write(payload);
    await new Promise(setImmediate);
    f.log.truncate(120);
    await expect.poll(() => f.log.status().firstIndex).toBeGreaterThan(80);
    await f.log.close();
    await expect(f.open({ appliedIndex: 10 })).rejects.toThrow('up to 10 only');
  });

  test('the old one grows when there is no file descriptor', async () => {
    const f = new LogFixture();
    await f.open();
    f.disk.fault = (operation) => (operation === 'open' ? 'EMFILE' : undefined);
    for (const payload of numbered(100)) await f.write(payload);
    expect(f.segments()).toHaveLength(1);
    f.disk.fault = () => undefined;
    await f.write('next');
    expect(f.segments()).toHaveLength(2);
    f.crash();
    await f.open();
    expect(f.replayed.size).toBe(101);
  });
});

describe('identity', () => {
  test('a log of another pod, or on another volume, is refused', async () => {
    const f = new LogFixture();
    await f.open();
    const { volume } = f.log.status();
    await f.log.close();
    await expect(f.open({ ids: { cluster: 7, pod: 4 } })).rejects.toThrow('pod 4');
    await expect(f.open({ volume: volume + 1 })).rejects.toThrow(`on volume ${volume}`);
    await f.open({ volume });
    expect(f.log.status().volume).toBe(volume);
  });

  test('an empty disk in place of a log is refused, unless the loss is accepted', async () => {
    const f = new LogFixture();
    await expect(f.open({ volume: 12 })).rejects.toThrow('is its disk mounted');
    await expect(f.open({ appliedIndex: 9 })).rejects.toThrow('is its disk mounted');
    await f.open({ appliedIndex: 9, acceptLoss: true });
    expect(f.entry('a')).toBe(10);
  });

  test('every start counts', async () => {
    const f = new LogFixture();
    for (let i = 1; i <= 3; i++) {
      await f.open();
      expect(f.log.status().incarnation).toBe(i);
      f.crash();
    }
  });
});

describe('damage', () => {
  const written = async (...ticks: string[][]) => {
    const f = new LogFixture();
    await f.open();
    for (const tick of ticks) await f.write(...tick);
    return f;
  };

  /** Flips a bit of the nth frame that holds this text. */
  const spoil = (f: LogFixture, name: string, text: string) =>
    f.disk.corrupt(f.path(name), (bytes) => {
      bytes[bytes.indexOf(text)]! ^= 1;
    });

  test('of a synced frame is reported with its place, and never cut', async () => {
    const f = await written(['first'], ['second'], ['third'], ['fourth']);
    f.kill();
    spoil(f, 'seg-0000000001', 'second');
    const size = f.disk.contents(f.path('seg-0000000001')).length;
    const opening = f.open();
    await expect(opening).rejects.toMatchObject({
      name: 'LogCorruptionError',
      segment: '/log/seg-0000000001',
      lastIndex: 1,
    });
    await expect(opening).rejects.toThrow(/at offset \d+ \(LSN \d+\).*checksum.*accept-loss/);
    expect(f.disk.contents(f.path('seg-0000000001')).length).toBe(size);

    await f.open({ acceptLoss: true });
    expect([...f.replayed.values()]).toEqual(['first']);
    await f.write('new second');
    f.crash();
    await f.open();
    expect([...f.replayed.values()]).toEqual(['first', 'new second']);
  });

  test('before a later segment is reported', async () => {
    const f = await written(...numbered(60).map((payload) => [payload]));
    await new Promise(setImmediate);
    f.kill();
    f.disk.corrupt(f.path('seg-0000000001'), (bytes) => bytes.subarray(0, bytes.length - 16));
    await expect(f.open()).rejects.toThrow('seg-0000000002 was named only when');
    await f.open({ acceptLoss: true });
    expect(f.replayed.size).toBeGreaterThan(10);
    expect(f.segments()).toEqual(['seg-0000000001']);
  });

  test('a segment cut at a frame boundary, or missing, is reported', async () => {
    const f = await written(...numbered(90).map((payload) => [payload]));
    await new Promise(setImmediate);
    f.kill();
    const first = f.disk.contents(f.path('seg-0000000001'));
    let end = 64;
    let last = 0;
    while (end < first.length) {
      last = end;
      end += Math.ceil(getU32(first, end) / 8) * 8;
    }
    f.disk.corrupt(f.path('seg-0000000001'), (bytes) => bytes.subarray(0, last));
    await expect(f.open()).rejects.toThrow('the one before it ends at');
    f.disk.corrupt(f.path('seg-0000000001'), () => first);
    f.disk.remove(f.path('seg-0000000002'));
    await expect(f.open()).rejects.toThrow('begins after entry');
  });

  test('of a header is reported', async () => {
    const f = await written(['a']);
    f.kill();
    f.disk.corrupt(f.path('seg-0000000001'), (bytes) => {
      bytes[20]! ^= 1;
    });
    await expect(f.open()).rejects.toThrow('checksum of the header');
  });

  test('a torn end was promised to nobody, and is cut', async () => {
    const f = new LogFixture({ fsync: 'no' });
    await f.open();
    f.tick('kept');
    f.tick('torn');
    f.kill();
    spoil(f, 'seg-0000000001', 'torn');
    await f.open();
    expect([...f.replayed.values()]).toEqual(['kept']);
    expect(f.log.status().cutBytes).toBe(72);
    expect(f.log.status().cleanStart).toBe(false);
  });

  test('a write that met a full disk is not taken for damage once there are later segments', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    for (let seed = 1; seed <= 20; seed++) {
      const f = new LogFixture({ seed, segmentBytes: 512 });
      await f.open();
      await f.write('a'.repeat(100));
      // The mark of an idle log is done without.
      f.disk.capacityBytes = f.disk.usedBytes() + 30;
      await vi.advanceTimersByTimeAsync(1000);
      f.disk.capacityBytes = Infinity;
      for (let i = 0; i < 4; i++) await f.write('b'.repeat(400));
      await new Promise(setImmediate);
      f.crash();
      await f.open();
      expect(f.replayed.size).toBe(5);
      await f.log.close();
    }
  });

  test('the last synced frame is protected by the mark of an idle log', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const f = await written(['last']);
    await vi.advanceTimersByTimeAsync(1000);
    f.kill();
    spoil(f, 'seg-0000000001', 'last');
    await expect(f.open()).rejects.toThrow('says that this was on disk');
  });

  test('a frame copied from another segment is not taken for one of this', async () => {
    const f = await written(...numbered(30).map((payload) => [payload]));
    await new Promise(setImmediate);
    await f.log.close();
    const first = f.disk.contents(f.path('seg-0000000001'));
    const end = first.length;
    const length = Math.ceil((48 + 16 + 100) / 8) * 8;
    f.disk.corrupt(f.path(f.segments().at(-1)!), (bytes) =>
      Buffer.concat([bytes, first.subarray(end - length)]),
    );
    await f.open();
    expect(f.replayed.size).toBe(30);
    expect(f.log.status().cutBytes).toBe(length);
  });
});

describe('a full disk', () => {
  const capacityBytes = 2 << 20;

  const fillUp = async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const f = new LogFixture({ ballastBytes: 1 << 16, capacityBytes, segmentBytes: 1 << 17 });
    await f.open();
    expect(f.log.status().ballastBytes).toBe(1 << 16);
    const payload = 'p'.repeat(10_000);
    let written = 0;
    while (f.log.failure === undefined) {
      await f.write(payload);
      written++;
    }
    return { f, written };
  };

  test('takes the write that found it, and says so', async () => {
    const { f, written } = await fillUp();
    expect(f.log.failure?.message).toMatch(/^disk full: \d+ bytes free in \/log$/);
    expect(f.log.lastIndex).toBe(written);
    expect(f.log.status().ballastBytes).toBe(0);
    f.crash();
    await f.open();
    expect(f.replayed.size).toBe(written);
    await f.log.close();
  });

  test('is over once there is room for the ballast again', async () => {
    const { f, written } = await fillUp();
    await vi.advanceTimersByTimeAsync(1000);
    expect(f.log.failure).toBeDefined();
    f.disk.capacityBytes = 2 * capacityBytes;
    await vi.advanceTimersByTimeAsync(1000);
    await expect.poll(() => f.log.failure).toBeUndefined();
    expect(f.log.status().ballastBytes).toBe(1 << 16);
    await f.write('more');
    f.crash();
    await f.open();
    expect(f.replayed.size).toBe(written + 1);
    await f.log.close();
  });

  test('that cannot take a tick whole takes nothing of it', async () => {
    const { f, written } = await fillUp();
    const before = f.log.status();
    // Larger than what one frame gathers: a part is in the file before the rest fails.
    for (let i = 0; i < 3; i++) f.entry('n'.repeat(100));
    for (let i = 0; i < 10; i++) f.entry('n'.repeat(1 << 20));
    expect(() => f.log.endTick()).toThrow(
      expect.objectContaining({
        name: 'LogWriteError',
        message: expect.stringMatching('disk full'),
      }),
    );
    expect(f.log.lastIndex).toBe(written);
    expect(f.log.status().bytes).toBe(before.bytes);
    f.disk.capacityBytes *= 2;
    await f.write('instead');
    expect(f.log.lastIndex).toBe(written + 1);
    f.crash();
    await f.open();
    expect(f.replayed.get(written + 1)).toBe('instead');
    expect(f.replayed.size).toBe(written + 1);
    await f.log.close();
  });

  test('undoes a tick that has already gone through several segments', async () => {
    const f = new LogFixture({ capacityBytes: 20 << 20, segmentBytes: 1 << 20 });
    await f.open();
    await f.write('before');
    const { segments, bytes } = f.log.status();
    f.entry('a'.repeat(9 << 20));
    f.entry('b'.repeat(9 << 20));
    f.entry('c'.repeat(9 << 20));
    expect(() => f.log.endTick()).toThrow('disk full');
    expect(f.log.lastIndex).toBe(1);
    expect(f.log.status()).toMatchObject({ segments, bytes });
    await f.write('after');
    f.crash();
    await f.open();
    expect([...f.replayed.values()]).toEqual(['before', 'after']);
  });

  test('takes back what a sync in the middle of the tick had already covered', async () => {
    const f = new LogFixture({ capacityBytes: 20 << 20, segmentBytes: 64 << 20 });
    await f.open();
    f.disk.stallSyncs();
    f.tick('a');
    f.tick('b');
    f.entry('c'.repeat(9 << 20));
    const syncs = f.log.status().fsyncs;
    f.disk.resumeSyncs();
    await expect.poll(() => f.log.status().fsyncs).toBe(syncs + 2);
    f.entry('d'.repeat(12 << 20));
    expect(() => f.log.endTick()).toThrow('disk full');

    f.disk.stallSyncs();
    const replies: string[] = [];
    f.log.whenSettled(f.tick('e'), () => {
      replies.push('e');
      f.disk.stallSyncs();
    });
    f.log.whenSettled(f.tick('f'), () => replies.push('f'));
    // The sync that follows the one under way begins when a part of this tick is in the file …
    f.entry('g'.repeat(9 << 20));
    f.disk.resumeSyncs();
    await expect.poll(() => replies).toEqual(['e']);
    f.entry('h'.repeat(12 << 20));
    expect(() => f.log.endTick()).toThrow('disk full');
    // … and must not answer for what took its place.
    f.log.whenSettled(f.tick('i'), () => replies.push('i'));
    f.disk.fault = (operation) => (operation === 'sync' ? 'EIO' : undefined);
    f.disk.resumeSyncs();
    await expect.poll(() => f.fatal?.message).toContain('EIO');
    expect(replies).not.toContain('i');
  });

  test('refuses entries of an engine that is ahead of the log, and takes them behind its state once there is room', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const f = new LogFixture();
    await f.open();
    await f.write('a');
    f.kill();
    f.disk.capacityBytes = f.disk.usedBytes();
    await f.open({ appliedIndex: 5 });
    for (let i = 0; i < 2; i++) expect(() => f.tick('refused')).toThrow('disk full');
    f.disk.capacityBytes = Infinity;
    await vi.advanceTimersByTimeAsync(1000);
    await expect.poll(() => f.log.failure).toBeUndefined();
    await f.write('b');
    f.crash();
    await f.open({ appliedIndex: 5 });
    expect([...f.replayed]).toEqual([[6, 'b']]);
    await f.log.close();
  });

  test.each([1, 2, 3, 4])('whose sync fails as room is made sends no reply (%i)', async (seed) => {
    const f = new LogFixture({ seed, capacityBytes: 20 << 20, segmentBytes: 64 << 20 });
    await f.open();
    f.disk.stallSyncs();
    const replies: string[] = [];
    f.log.whenSettled(f.tick('a'), () => replies.push('a'));
    await new Promise(setImmediate);
    f.entry('b'.repeat(9 << 20));
    f.entry('c'.repeat(12 << 20));
    f.disk.fault = (operation) => (operation === 'sync' ? 'EIO' : undefined);
    // The disk reports to this sync or to the one under way that it has given up what both were to write.
    expect(() => f.log.endTick()).toThrow(/EIO|disk full/);
    f.disk.fault = () => undefined;
    f.disk.resumeSyncs();
    await expect.poll(() => f.fatal?.message).toContain('EIO');
    expect(replies).toEqual([]);
  });

  test('can be opened for reading, and takes entries once there is room', async () => {
    const { f, written } = await fillUp();
    f.kill();
    f.disk.capacityBytes = f.disk.usedBytes();
    await f.open();
    expect(f.replayed.size).toBe(written);
    expect(f.log.failure?.message).toContain('disk full: 0 bytes free');
    expect(() => f.tick('refused')).toThrow('disk full');
    f.disk.capacityBytes *= 2;
    await vi.advanceTimersByTimeAsync(1000);
    await expect.poll(() => f.log.failure).toBeUndefined();
    await f.write('taken');
    f.crash();
    await f.open();
    expect(f.replayed.get(written + 1)).toBe('taken');
    await f.log.close();
  });

  test('lets segments go that an engine no longer needs', async () => {
    const { f, written } = await fillUp();
    f.log.truncate(written - 1);
    await expect.poll(() => f.log.status().segments).toBeLessThan(3);
    await vi.advanceTimersByTimeAsync(1000);
    await expect.poll(() => f.log.failure).toBeUndefined();
    await f.log.close();
  });
});

describe('a large frame', () => {
  const large = 'l'.repeat(10_000);

  /** A log in which 4 kB are large, with a large frame on its way to the file. */
  async function writing(fsync: 'everysec' | 'no'): Promise<{ f: LogFixture; settled: string[] }> {
    const f = new LogFixture({ largeFrameBytes: 4096, segmentBytes: 1 << 20 });
    await f.open({ fsync });
    const settled: string[] = [];
    f.entry(large);
    const position = f.log.endTick(0);
    expect(position).toBeGreaterThan(0);
    f.log.whenSettled(position, () => settled.push('large'));
    return { f, settled };
  }

  test.each(['everysec', 'no'] as const)(
    'is written later: under %s its turn waits, and those that write or read behind it',
    async (fsync) => {
      const { f, settled } = await writing(fsync);
      f.entry('small');
      f.log.whenSettled(f.log.endTick(0), () => settled.push('small'));
      f.log.whenSettled(f.log.endTick(0), () => settled.push('reads'));
      // Nothing of the pod was looked at.
      expect(f.log.endTick()).toBe(-1);
      expect(settled).toEqual([]);
      await expect.poll(() => settled).toEqual(['large', 'small', 'reads']);
      expect(f.log.endTick(0)).toBe(-1);
      f.kill();
      await f.open();
      expect([...f.replayed.values()]).toEqual([large, 'small']);
    },
  );

  test('that a kill finds half written takes along what came behind it, which nobody was told of', async () => {
    const { f, settled } = await writing('no');
    f.entry('small');
    f.log.whenSettled(f.log.endTick(0), () => settled.push('small'));
    f.kill();
    await f.open();
    expect([...f.replayed.values(), ...settled]).toEqual([]);
    await f.write('anew');
    f.crash();
    await f.open();
    expect([...f.replayed]).toEqual([[1, 'anew']]);
  });

  test('is waited for by a sync, a reader of the log, and the end', async () => {
    const { f } = await writing('no');
    const read: number[] = [];
    for await (const { index } of f.log.readBack(0, 1)) read.push(index);
    expect(read).toEqual([1]);
    f.entry(large);
    f.log.endTick(0);
    await f.log.sync();
    f.crash();
    await f.open({ fsync: 'no' });
    expect(f.log.lastIndex).toBe(2);
    f.entry(large);
    f.log.endTick(0);
    await f.log.close();
    f.crash();
    await f.open();
    expect(f.log.lastIndex).toBe(3);
    expect(f.log.status().cleanStart).toBe(true);
  });

  test('has its checksum taken in steps, and so has one in the midst of a tick', async () => {
    const f = new LogFixture({ segmentBytes: 1 << 26 });
    await f.open({ fsync: 'no' });
    summed.longest = 0;
    f.entry('a'.repeat(20 << 20));
    f.entry('b'.repeat(3 << 20));
    f.log.endTick(0);
    await f.log.sync();
    expect(summed.longest).toBe(1 << 20);
    f.crash();
    await f.open();
    expect(Array.from(f.replayed.values(), (one) => one.length)).toEqual([20 << 20, 3 << 20]);
  });

  test('of ops that another writer has is not copied, whatever came before in its turn', async () => {
    const f = new LogFixture({ largeFrameBytes: 4096 });
    await f.open();
    const adopted = (text: string): number => {
      const ops = new RecordBatchWriter();
      ops.pos = opsRoomBytes;
      ops.reserve(text.length);
      ops.pos += ops.buf.write(text, ops.pos, 'latin1');
      f.log.begin();
      f.log.adopt(ops);
      return f.log.end();
    };
    f.entry('first');
    expect([adopted(large), adopted('short')]).toEqual([2, 3]);
    f.entry('last');
    await f.safe(f.log.endTick());
    f.crash();
    await f.open();
    expect([...f.replayed.values()]).toEqual(['first', large, 'short', 'last']);
  });

  test('is written at once where it may not fit, so that its turn can be refused', async () => {
    const f = new LogFixture({ largeFrameBytes: 4096, segmentBytes: 1 << 20 });
    await f.open({ fsync: 'no' });
    f.disk.capacityBytes = f.disk.usedBytes() + 5000;
    f.entry(large);
    expect(() => f.log.endTick(0)).toThrow('disk full');
    expect([f.log.lastIndex, f.fatal]).toEqual([0, undefined]);
  });

  test('that cannot be written ends the process, and nothing behind it is told', async () => {
    const { f, settled } = await writing('no');
    f.disk.fault = (operation) => (operation === 'write' ? 'EIO' : undefined);
    await expect.poll(() => f.fatal?.message).toContain('EIO');
    await f.log.close();
    expect(settled).toEqual([]);
  });
});

test('an error of the disk keeps its code', () => {
  expect(diskError('EIO', 'write', '/x')).toMatchObject({ code: 'EIO', path: '/x' });
});

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TsmEngine } from '../engines/tsm/tsm-engine.ts';
import { batchOf, TestSeriesCache } from '../engines/tsm/testing/point-batches.ts';
import { readAll } from '../engines/tsm/testing/read-points.ts';
import { RecordBatchWriter } from '../universal-row/record-batch.ts';
import { inOneGo } from '../universal-row/slices.ts';
import { FaultyDisk } from './disk/faulty-disk.ts';
import { chunksOf, entriesOf } from './series-snapshot.ts';

async function* stream(buffers: Iterable<Buffer>): AsyncGenerator<Buffer> {
  for (const buffer of buffers) yield await Promise.resolve(buffer);
}

async function all(buffers: AsyncIterable<Buffer>): Promise<Buffer[]> {
  const found: Buffer[] = [];
  for await (const buffer of buffers) found.push(Buffer.from(buffer));
  return found;
}

test('entries come back out of chunks, wherever those are cut', async () => {
  const entry = fc.uint8Array({ minLength: 1, maxLength: 2000 });
  await fc.assert(
    fc.asyncProperty(
      fc.array(entry),
      fc.infiniteStream(fc.integer({ min: 1, max: 999 })),
      async (list, cuts) => {
        const entries = list.map((bytes) => Buffer.from(bytes));
        const whole = Buffer.concat(await all(chunksOf(stream(entries))));
        const pieces: Buffer[] = [];
        for (let at = 0; at < whole.length; ) {
          const size = cuts.next().value;
          pieces.push(whole.subarray(at, at + size));
          at += size;
        }
        expect(await all(entriesOf(stream(pieces)))).toEqual(entries);
        if (whole.length > 0) {
          await expect(all(entriesOf(stream([whole.subarray(0, -1)])))).rejects.toThrow(RangeError);
        }
      },
    ),
  );
});

test('a large entry becomes chunks of bounded length', async () => {
  const chunks = await all(chunksOf(stream([Buffer.alloc(1_500_000, 7), Buffer.alloc(10, 8)])));
  expect(chunks.map(({ length }) => length)).toEqual([524_288, 524_288, 451_442]);
});

const rng = { next: () => 0.5 };

class Side {
  index = 0;
  disk: FaultyDisk;
  engine: TsmEngine;
  readonly #cache = new TestSeriesCache();

  constructor(disk = new FaultyDisk({ rng })) {
    this.disk = disk;
    this.engine = new TsmEngine({ directory: 'data', disk });
  }

  enter(prepare: (into: RecordBatchWriter) => void): void {
    const into = new RecordBatchWriter();
    prepare(into);
    this.engine.apply(into.buf, 0, into.pos, ++this.index);
  }

  fill(series: string, count: number): void {
    this.enter((into) =>
      this.engine.prepareChange({ kind: 'createDatabase', database: 'db' }, into),
    );
    for (let from = 0; from < count; from += 2000) {
      const points = Array.from({ length: 2000 }, (_, n) => ({
        series: `${series},n=${n % 50}`,
        fields: { v: from + n },
        time: BigInt(from + n) * 1_000_000_000n,
      }));
      this.enter((into) =>
        this.engine.prepareWrite('db', '', batchOf(this.#cache, points), 0, into),
      );
    }
  }

  rows(measurement: string): number {
    const range = { from: 0n, to: 1n << 60n, descending: false };
    const scan = this.engine.scan({
      database: 'db',
      retentionPolicy: '',
      measurement,
      fields: ['v'],
      ...range,
    });
    return readAll(inOneGo(scan), ['v']).length;
  }

  async crash(): Promise<void> {
    this.disk = this.disk.crash();
    this.engine = new TsmEngine({ directory: 'data', disk: this.disk });
    await this.engine.open();
  }
}

test('a crash while a snapshot is installed leaves what was there, and it can begin again', async () => {
  const source = new Side();
  await source.engine.open();
  source.fill('new', 60_000);
  const target = new Side();
  await target.engine.open();
  target.fill('old', 4000);
  await target.engine.checkpoint();
  let left = 2;
  /** Goes on until the machine dies. */
  async function* dying(): AsyncGenerator<Buffer> {
    for await (const entry of source.engine.exportSnapshot()) {
      yield entry;
      // Concurrent work must not see a part of it as the whole.
      for (let i = 0; i < 20; i++) {
        target.engine.background(10);
        await new Promise(setImmediate);
      }
      void target.engine.checkpoint().catch(() => {});
      if (--left === 0) await new Promise(() => {});
    }
  }
  void target.engine.importSnapshot(entriesOf(chunksOf(dying())), source.index);
  while (left > 0) await new Promise(setImmediate);
  for (let i = 0; i < 200; i++) {
    target.engine.background(10);
    await new Promise(setImmediate);
  }
  await target.crash();
  expect([target.engine.appliedIndex, target.rows('old'), target.rows('new')]).toEqual([
    3, 4000, 0,
  ]);
  await target.engine.importSnapshot(
    entriesOf(chunksOf(source.engine.exportSnapshot())),
    source.index,
  );
  await target.crash();
  expect([target.engine.appliedIndex, target.rows('old'), target.rows('new')]).toEqual([
    source.index,
    0,
    60_000,
  ]);
});

// That a body whose pieces are all at hand, so that nothing it waits for lets others run, stops for them all the same; and that
// a body that is given to a second leader is cut so that nothing of it is stored twice.

import { afterEach, expect, test, vi } from 'vitest';
import { OutcomeUnknownError } from '../../../contracts/series-store.ts';
import { systemClock } from '../../../universal-row/environment.ts';
import {
  contendedSliceMs,
  type PodAdmission,
  type PodRequest,
} from '../../../contracts/pod-admission.ts';
import { readBatchId } from '../../../universal-row/series/batch-identity.ts';
import { GroupCommit } from './group-commit.ts';
import { InfluxCounters } from './influx-metrics.ts';
import { PointWriter } from './point-writer.ts';
import { MemorySeriesStore } from './testing/memory-series-store.ts';

const piecesAtHand = 200;

/** Others are always about: a piece of work is over after a tenth of a millisecond. */
class ContendedPod implements PodAdmission {
  requeued = 0;
  beginTick(): void {}
  admit(): 'admitted' {
    return 'admitted';
  }
  requeue(request: PodRequest): void {
    this.requeued++;
    setImmediate(() => request.resume(true));
  }
  leave(): boolean {
    return false;
  }
  charge(): void {}
  spent(): void {}
  isContended(): boolean {
    return true;
  }
  isSliceOver(): boolean {
    return true;
  }
}

afterEach(() => {
  vi.restoreAllMocks();
});

function writerOf(store: MemorySeriesStore, podAdmission?: PodAdmission): PointWriter {
  return new PointWriter({
    commit: new GroupCommit(store),
    counters: new InfluxCounters(),
    clock: systemClock,
    podAdmission,
    timeoutMs: 0,
  });
}

test.each([
  ['bad lines', 'm v=x\n'],
  ['one line without an end', 'mmmmmm'],
])('%s in pieces that are at hand', async (_, text) => {
  // Each look at the clock is a fiftieth of a slice.
  let now = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => (now += contendedSliceMs / 50));
  const store = new MemorySeriesStore('d');
  const podAdmission = new ContendedPod();
  const writer = writerOf(store, podAdmission);
  async function* body(): AsyncGenerator<Buffer> {
    for (let n = 0; n < piecesAtHand; n++) yield Buffer.from(text);
  }
  const target = { tenant: 0, store, database: 'd', retentionPolicy: '', precision: '' };
  const report = await writer.write(target, body(), false);
  expect(report.hasGoodLines).toBe(false);
  expect(podAdmission.requeued).toBeGreaterThan(2);
  expect(podAdmission.requeued).toBeLessThan(piecesAtHand / 2);
});

type Warm = 'the same body' | 'other bodies';

test.each<[Warm, Warm]>([
  ['the same body', 'the same body'],
  ['the same body', 'other bodies'],
  ['other bodies', 'the same body'],
  ['other bodies', 'other bodies'],
])(
  'a further attempt finds each batch stored or not, after %s at the first leader and %s at the second',
  async (before, beforeSecond) => {
    // Batches become larger with each that takes little time.
    let now = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => (now += 0.01));
    const store = new MemorySeriesStore('d');
    const write = store.write.bind(store);
    const given: [from: number, to: number][] = [];
    let left = Infinity;
    store.write = (database, policy, batch) => {
      const { from, to } = readBatchId(batch.identity!.id);
      given.push([from, to]);
      expect(to - from).toBe(batch.rows);
      if (--left < 0) throw new OutcomeUnknownError();
      return write(database, policy, batch);
    };
    const lines = (count: number, seconds: number, fields: string): string[] =>
      Array.from({ length: count }, (_, n) => {
        const time = BigInt(seconds) * 1_000_000_000n + BigInt(n);
        return `m,s=${seconds + (n % 400)} ${fields}v=${n} ${time}`;
      });
    // Times that are years apart are in different batches. New series and many values end a batch, too.
    const wide = 'a=1,b=2,c=3,d=4,e=5,';
    const body = Buffer.from([...lines(2100, 0, wide), ...lines(30_000, 1e9, wide)].join('\n'));
    const others = Buffer.from(lines(30_000, 5, '').join('\n'));
    const identity = { id: 'x', at: 0, isRepeated: false };
    const target = { tenant: 0, store, database: 'd', retentionPolicy: '', precision: '' };
    const warm = async (by: Warm): Promise<PointWriter> => {
      const writer = writerOf(store);
      const bytes = by === 'other bodies' ? others : body;
      for (let n = 0; n < 5; n++) await writer.write({ ...target, identity }, [bytes], false);
      return writer;
    };
    const [first, second] = [await warm(before), await warm(beforeSecond)];
    given.length = 0;
    left = 5;
    await expect(first.write({ ...target, identity }, [body], false)).rejects.toThrow(
      OutcomeUnknownError,
    );
    const stored = given.splice(0);
    expect(stored.some(([from, to]) => to - from > 500)).toBe(true);

    left = Infinity;
    const again = { ...identity, isRepeated: true };
    await second.write({ ...target, identity: again }, [body], false);
    expect(given.at(-1)![1]).toBe(32_100);
    for (const [from, to] of given) {
      const near = stored.filter((one) => one[0] < to && from < one[1]);
      const isWithin = near.length === 1 && near[0]![0] <= from && to <= near[0]![1];
      expect([from, to, near.length === 0 || isWithin]).toEqual([from, to, true]);
    }
  },
);

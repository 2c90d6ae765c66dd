// That a body whose pieces are all at hand, so that nothing it waits for lets others run, stops for them all the same.

import { afterEach, expect, test, vi } from 'vitest';
import { systemClock } from '../../../universal-row/environment.ts';
import {
  contendedSliceMs,
  type PodAdmission,
  type PodRequest,
} from '../../../contracts/pod-admission.ts';
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

test.each([
  ['bad lines', 'm v=x\n'],
  ['one line without an end', 'mmmmmm'],
])('%s in pieces that are at hand', async (_, text) => {
  // Each look at the clock is a fiftieth of a slice.
  let now = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => (now += contendedSliceMs / 50));
  const store = new MemorySeriesStore('d');
  const podAdmission = new ContendedPod();
  const writer = new PointWriter({
    commit: new GroupCommit(store),
    counters: new InfluxCounters(),
    clock: systemClock,
    podAdmission,
    timeoutMs: 0,
  });
  async function* body(): AsyncGenerator<Buffer> {
    for (let n = 0; n < piecesAtHand; n++) yield Buffer.from(text);
  }
  const target = { tenant: 0, store, database: 'd', retentionPolicy: '', precision: '' };
  const report = await writer.write(target, body(), false);
  expect(report.hasGoodLines).toBe(false);
  expect(podAdmission.requeued).toBeGreaterThan(2);
  expect(podAdmission.requeued).toBeLessThan(piecesAtHand / 2);
});

import { expect, test } from 'vitest';
import { RowWork } from '../universal-row/row-work.ts';
import { PodLoad } from './pod-load.ts';

test('what commands did is counted once, whatever else their objects have counted', () => {
  const load = new PodLoad();
  const [shared, other] = [new RowWork(), new RowWork()];
  Object.assign(shared, { lookups: 7, logBytes: 100 });
  load.begin(shared);
  shared.lookups++;
  shared.logBytes += 30;
  load.end(shared, 5);
  load.begin(other);
  other.reads += 2;
  load.end(other, 40, 3);
  const { commands, sent, work } = load.take();
  expect({ commands, sent }).toEqual({ commands: 4, sent: 45 });
  expect(work).toEqual(Object.assign(new RowWork(), { lookups: 1, logBytes: 30, reads: 2 }));
  expect(load.take()).toEqual({ commands: 0, sent: 0, work: new RowWork() });
});

test('a long command is counted at its end, beside those that ran between its steps', () => {
  const load = new PodLoad();
  const [long, short] = [new RowWork(), new RowWork()];
  load.begin(long);
  long.walked += 10;
  const before = load.beginLong();
  load.begin(short);
  short.lookups++;
  load.end(short, 1);
  long.walked += 90;
  load.endLong(before, long, 1000);
  load.missed();
  const { commands, sent, work } = load.take();
  expect({ commands, sent }).toEqual({ commands: 2, sent: 1001 });
  expect(work).toEqual(Object.assign(new RowWork(), { walked: 100, lookups: 1, misses: 1 }));
});

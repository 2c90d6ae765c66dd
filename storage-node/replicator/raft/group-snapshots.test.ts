// Snapshots that are sent: the leader waits until the follower has installed one.

import { beforeEach, expect, test } from 'vitest';
import { type Message, MessageType, type Snapshot } from '../engine/frames.ts';
import { systemRng } from '../../../universal-row/environment.ts';
import { FaultyDisk } from '../../disk/faulty-disk.ts';
import { GroupSnapshots } from './group-snapshots.ts';
import type { LogPosition } from './log-position.ts';
import { encodeNumbers, SnapshotType } from './snapshot-sender.ts';
import type { StateMachine } from './state-machine.ts';

let posted: Message[];
let reports: [number, boolean][];
let match: number;
let snapshots: GroupSnapshots;
let disk: FaultyDisk;

const answer = (next: number, reject = false, incarnation = 1): void => {
  const message = {
    type: SnapshotType.answer,
    from: 2,
    to: 1,
    reject,
    context: encodeNumbers(1, next),
  } as Message;
  snapshots.receive({ group: 9, incarnation, message, payloads: [], times: undefined } as never);
};

/** The follower has received a chunk and the last part. */
beforeEach(async () => {
  [posted, reports, match] = [[], [], 0];
  async function* chunks(): AsyncGenerator<Buffer> {
    await Promise.resolve();
    yield Buffer.from('rows');
  }
  disk = new FaultyDisk({ rng: systemRng });
  disk.makeDirectory('d');
  snapshots = new GroupSnapshots({
    group: 9,
    disk,
    directory: 'd',
    machine: {
      exportState: () => Promise.resolve({ index: 7, chunks: chunks() }),
    } as unknown as StateMachine,
    positionAt: (index) => ({ index, term: 1 }) as LogPosition,
    post: (message) => posted.push(message) > 0,
    report: (to, ok) => reports.push([to, ok]),
    matchOf: () => match,
    slots: { free: 1 },
    time: () => {},
  });
  snapshots.send({ from: 1, to: 2, term: 1 } as Message);
  await expect.poll(() => posted.length).toBe(2);
  answer(2);
});

test('the engine sends nothing to the follower before it has installed the snapshot', () => {
  expect(reports).toEqual([]);
  expect([snapshots.isSending, snapshots.oldestIndex]).toEqual([true, 7]);
  match = 7;
  snapshots.tick();
  expect([snapshots.isSending, snapshots.oldestIndex]).toEqual([false, Infinity]);
  expect(reports).toEqual([]);
});

test('a follower is asked again, and one that does not install ends the wait', () => {
  for (let i = 0; i < 20; i++) snapshots.tick();
  expect(posted.slice(2)).toEqual([posted[1]]);
  answer(0, true);
  expect(reports).toEqual([[2, true]]);
  expect(snapshots.isSending).toBe(false);
});

test('a follower that has started again ends the wait', () => {
  snapshots.heard(2, 1);
  expect(reports).toEqual([]);
  snapshots.heard(2, 2);
  expect(reports).toEqual([[2, true]]);
});

test('a leader that steps down waits no longer', () => {
  snapshots.stopSending();
  expect([snapshots.isSending, reports]).toEqual([false, []]);
});

test('a snapshot that is whole is taken as it is, whatever part of another one has come behind it', async () => {
  const part = (from: number, number: number, chunk: string, term: number): void => {
    const message = {
      type: chunk === '' ? MessageType.snapshot : SnapshotType.chunk,
      ...{ from, to: 1, term, context: encodeNumbers(1, number) },
      snapshot: chunk === '' ? { index: 7, term } : undefined,
    } as Message;
    const payloads = chunk === '' ? [] : [Buffer.from(chunk)];
    snapshots.receive({ group: 9, incarnation: 1, message, payloads });
  };
  const taken = async (term: number): Promise<string> => {
    const parts: string[] = [];
    const staging = snapshots.take({ index: 7, term } as Snapshot);
    for await (const chunk of staging.chunks()) parts.push(Buffer.from(chunk).toString());
    staging.remove();
    return parts.join();
  };
  part(2, 0, 'rows of 2', 1);
  part(2, 1, '', 1);
  part(3, 0, 'rows of 3', 2);
  expect(await taken(1)).toBe('rows of 2');
  part(3, 1, 'more of 3', 2);
  part(3, 2, '', 2);
  expect(await taken(2)).toBe('rows of 3,more of 3');
  // What the engine does not want is dropped.
  part(2, 0, 'rows of 2', 1);
  part(2, 1, '', 1);
  expect(disk.list('d')).toHaveLength(1);
  snapshots.endTick();
  expect(disk.list('d')).toEqual([]);
});

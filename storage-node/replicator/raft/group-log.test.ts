// Batches of the engine's writes, read back from the log.

import { expect, test } from 'vitest';
import { makeDurableDirectory } from '../../../universal-row/durable-names.ts';
import { FaultyDisk } from '../../disk/faulty-disk.ts';
import { EntryKind, MessageType } from '../engine/frames.ts';
import type { Message } from '../engine/frames.ts';
import { Random } from '../simulation/timeline.ts';
import { Ballast } from '../wal/ballast.ts';
import { recoverLog } from '../wal/recovery.ts';
import { newGroupState } from '../wal/table.ts';
import { Wal } from '../wal/wal.ts';
import { makeReference } from './entry-reference.ts';
import { decodeAppend, encodeCreateFrame } from './frames-to-log.ts';
import { GroupLog } from './group-log.ts';
import type { GroupLogParts, LogItem } from './group-log.ts';
import { LogBatch } from './log-batch.ts';
import { encodePositions, firstPosition } from './log-position.ts';
import { Payloads } from './payloads.ts';

const directory = '/log';
const ids = { cluster: 1, pod: 1 };
const group = 7;

function emptyWal(disk: FaultyDisk): Wal {
  makeDurableDirectory(disk, directory);
  const fatal = (error: unknown): never => {
    throw error;
  };
  const ballast = new Ballast(disk, directory, fatal);
  const identity = { ...ids, volume: 5 };
  const wal = new Wal(
    { disk, directory, segmentBytes: 1 << 16, identity, incarnation: 1, ballast, fatal },
    [],
    new Map(),
  );
  wal.create(1);
  return wal;
}

async function recovered(disk: FaultyDisk): Promise<{ last: number; entries: number[] }> {
  const entries: number[] = [];
  const found = await recoverLog({
    ...{ disk, directory, ...ids, volume: undefined, acceptLoss: false },
    onTable: () => undefined,
    onAppend: (frame) => void entries.push(...decodeAppend(frame).map(({ index }) => index)),
    onRemoved: () => undefined,
    onProgress: undefined,
  });
  return { last: found!.groups.get(group)!.lastIndex, entries };
}

const payload = Buffer.from('\u0001\0\0\0x');
const data = makeReference({ replica: 2, incarnation: 1, firstPosition: 1, proposals: 1 }, payload);

/** A group's log that is given a snapshot with an entry behind it. */
function receiving(wal: Wal, parts: Partial<Record<keyof GroupLogParts, unknown>>) {
  const begin = firstPosition([1, 2, 3]);
  const state = { ...newGroupState(group), term: 1, configuration: encodePositions(begin) };
  wal.append(encodeCreateFrame(state, 1));
  wal.groups.set(group, state);
  const log = new LogBatch<LogItem>(wal);
  const payloads = new Payloads(wal, 0);
  const groupLog = new GroupLog({
    ...{ group, handle: 0, wal, log, state, payloads, begin },
    applier: { whenIdle: (then: () => void) => then(), installed: () => undefined },
    commit: { policy: 'always', after: (_: bigint, then: () => void) => then() },
    touch: () => undefined,
    failed: (error: Error) => expect.unreachable(error.message),
    ...parts,
  } as unknown as GroupLogParts);
  let stagings = 1;
  const { conf } = begin;
  groupLog.add({
    message: {
      ...{ type: MessageType.storageAppend, hasHardState: true, term: 3, vote: 2, commit: 20 },
      snapshot: { index: 20, term: 3, conf, data: new Uint8Array(0) },
      entries: [{ index: 21, term: 3, kind: EntryKind.normal, data }],
    } as unknown as Message,
    payloads: [payload],
    staging: { chunks: () => [], remove: () => stagings-- } as never,
    gated: [],
  });
  return { groupLog, log, payloads, stagings: () => stagings };
}

test('entries that come behind a snapshot in one write are in the log', async () => {
  const disk = new FaultyDisk({ rng: new Random(1) });
  const wal = emptyWal(disk);
  let installed: () => void;
  const isInstalled = new Promise<void>((resolve) => (installed = resolve));
  let durable = 0;
  const { log, payloads } = receiving(wal, {
    machine: { install: () => Promise.resolve() },
    durable: () => durable++,
    installed: () => installed(),
  });
  log.flush();
  await isInstalled;
  log.flush();
  expect(durable).toBe(1);
  expect(Buffer.from(payloads.get(21, 3, data)).toString()).toBe(payload.toString());
  wal.syncNow();
  expect(await recovered(disk.crash())).toEqual({ last: 21, entries: [21] });
});

test('a replica that is closed during the install of a snapshot ends nothing else', async () => {
  const wal = emptyWal(new FaultyDisk({ rng: new Random(1) }));
  let fail!: (error: Error) => void;
  const install = new Promise<void>((_, reject) => (fail = reject));
  const failures: string[] = [];
  const { groupLog, log, stagings } = receiving(wal, {
    machine: { install: () => install },
    failed: (error: Error) => failures.push(error.message),
  });
  log.flush();
  expect(groupLog.isInstalling).toBe(true);
  groupLog.close();
  fail(new Error('the engine is closed'));
  await new Promise(setImmediate);
  expect(failures).toEqual([]);
  expect(stagings()).toBe(0);
});

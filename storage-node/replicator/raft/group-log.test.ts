// Batches of the engine's writes, read back from the log.

import { expect, test } from 'vitest';
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
  disk.makeDirectory(directory);
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

test('entries that come behind a snapshot in one write are in the log', async () => {
  const disk = new FaultyDisk({ rng: new Random(1) });
  const wal = emptyWal(disk);
  const begin = firstPosition([1, 2, 3]);
  const state = { ...newGroupState(group), term: 1, configuration: encodePositions(begin) };
  wal.append(encodeCreateFrame(state, 1));
  wal.groups.set(group, state);
  const log = new LogBatch<LogItem>(wal);
  const payloads = new Payloads(wal, 0);
  let installed: () => void;
  const isInstalled = new Promise<void>((resolve) => (installed = resolve));
  let durable = 0;
  const groupLog = new GroupLog({
    ...{ group, handle: 0, wal, log, state, payloads, begin },
    machine: { install: () => Promise.resolve() },
    applier: { whenIdle: (then: () => void) => then(), installed: () => undefined },
    commit: { policy: 'always', after: (_: bigint, then: () => void) => then() },
    durable: () => durable++,
    installed: () => installed(),
    touch: () => undefined,
    failed: (error: Error) => expect.unreachable(error.message),
  } as unknown as GroupLogParts);
  const payload = Buffer.from('\u0001\0\0\0x');
  const id = { replica: 2, incarnation: 1, firstPosition: 1, proposals: 1 };
  const data = makeReference(id, payload);
  const { conf } = begin;
  groupLog.add({
    message: {
      ...{ type: MessageType.storageAppend, hasHardState: true, term: 3, vote: 2, commit: 20 },
      snapshot: { index: 20, term: 3, conf, data: new Uint8Array(0) },
      entries: [{ index: 21, term: 3, kind: EntryKind.normal, data }],
    } as unknown as Message,
    payloads: [payload],
    staging: { chunks: () => [], remove: () => undefined } as never,
    gated: [],
  });
  log.flush();
  await isInstalled;
  log.flush();
  expect(durable).toBe(1);
  expect(Buffer.from(payloads.get(21, 3, data)).toString()).toBe(payload.toString());
  wal.syncNow();
  expect(await recovered(disk.crash())).toEqual({ last: 21, entries: [21] });
});

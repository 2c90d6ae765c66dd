// Writes that are larger than an entry of the log, alone or with the others of their tick, and writes that wait for the log.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { KvEngine } from '../engines/kv/kv-engine.ts';
import { MemoryEngine } from '../engines/memory/memory-engine.ts';
import { applySlice } from './apply-slice.ts';
import { realDisk } from './disk/real-disk.ts';
import { commandOf, TestClock, TextReply } from './pod-fixture.ts';
import { Pod } from './pod.ts';
import { fullLogBytes } from './replicator/partition-log.ts';
import { UnreliableCluster, UnreliableLog } from './replicator/testing/unreliable-log.ts';
import { noRules } from './table-rules.ts';
import { RecordBatchWriter } from '../universal-row/record-batch.ts';
import type { Reply } from '../universal-row/reply.ts';

const maxWriteBytes = 1000;
const refusal =
  '(error) ERR the request writes more than 1000 bytes at once, the limit of cluster.max-entry-bytes';

function textOf(reply: Reply): string {
  return (reply as TextReply).toString();
}

describe.each(['memory', 'kv'])('%s', (model) => {
  let directory: string;
  let cluster: UnreliableCluster;
  let log: UnreliableLog;
  let pod: Pod;
  const clock = new TestClock();

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'polyrow-large-'));
    const engine =
      model === 'kv'
        ? new KvEngine({ directory, cacheBytes: 1 << 20 })
        : new MemoryEngine({ directory, disk: realDisk });
    await engine.open();
    cluster = new UnreliableCluster();
    log = new UnreliableLog(cluster, 1, 0);
    log.maxWriteBytes = maxWriteBytes;
    pod = new Pod({
      ...{ engine, log, group: 5, tables: new Map([[0, noRules]]) },
      clock,
      rng: { next: () => 0.5 },
      maxMemoryBytes: Infinity,
      checkpointBytes: Infinity,
      report: (_level, message) => expect.unreachable(message),
    });
    await log.lead();
  });
  afterEach(async () => {
    await pod.close();
    rmSync(directory, { recursive: true, force: true });
  });

  const put = (key: string, bytes: number): string => `put ${key} ${'x'.repeat(bytes)}`;

  async function run(...lines: string[]): Promise<string> {
    const reply = new TextReply();
    const commands = lines.map((line) => commandOf(line, 0));
    const done =
      commands.length === 1
        ? pod.execute(commands[0]!, reply)
        : pod.executeAll(commands, reply, (own) => {
            own.array(commands.length);
            return true;
          });
    return textOf((await done) ?? reply);
  }

  /** Sizes of the entries of the tick. */
  function commit(): number[] {
    pod.endTick();
    const from = cluster.committed.length;
    log.commit(Infinity);
    return cluster.committed.slice(from).map(({ length }) => length);
  }

  test('a command or a transaction that writes too much is refused, and changes nothing', async () => {
    expect(await run(put('a', 20))).toBe('OK');
    expect(commit()).toHaveLength(1);
    expect(await run(put('a', 1001))).toBe(refusal);
    expect(await run(put('a', 400), put('b', 400), put('c', 400))).toBe(refusal);
    expect(commit()).toEqual([]);
    expect(await run('get a')).toBe('x'.repeat(20));
    expect(await run('get b')).toBe('(nil)');
    expect(await run(put('a', 400), put('b', 400))).toBe('*2 OK OK');
    expect(commit()).toHaveLength(1);
    expect(await run('get b')).toBe('x'.repeat(400));
  });

  test('so is a transaction that takes long', async () => {
    const lines = Array.from({ length: 12 }, (_, n) => put(`key${n}`, 200));
    clock.lookMs = 2;
    expect(await run(...lines)).toBe(refusal);
    expect(pod.stats.longCommands).toBe(1);
    clock.lookMs = 0;
    expect(commit()).toEqual([]);
    for (const n of [0, 11]) expect(await run(`get key${n}`)).toBe('(nil)');
    expect(await run(put('key0', 200))).toBe('OK');
    expect(commit()).toHaveLength(1);
  });

  test('a row of a restore or a move that is larger is an error, and changes nothing', async () => {
    const slice = (bytes: number): Buffer => {
      const writer = new RecordBatchWriter();
      const value = Buffer.alloc(bytes, 'x');
      writer.value(0, Buffer.from('a'), 0, 1, value, 0, bytes, 0);
      return writer.buf.subarray(0, writer.pos);
    };
    const entries = cluster.committed.length;
    await applySlice(pod, slice(900));
    log.commit(Infinity);
    expect(cluster.committed).toHaveLength(entries + 1);
    await expect(applySlice(pod, slice(1001))).rejects.toThrow('more than 1000 bytes at once');
    expect(commit()).toEqual([]);
    expect(await run('get a')).toBe('x'.repeat(900));
  });

  test('commands of a tick that write more together are several entries', async () => {
    const keys = Array.from({ length: 10 }, (_, n) => `key${n}`);
    for (const key of keys) expect(await run(put(key, 400))).toBe('OK');
    const sizes = commit();
    expect(sizes.length).toBeGreaterThan(1);
    expect(Math.max(...sizes)).toBeLessThan(2 * maxWriteBytes + 8);
    for (const key of keys) expect(await run(`get ${key}`)).toBe('x'.repeat(400));
  });

  test('while much has no outcome, writes wait, and are answered in an answer of their own', async () => {
    expect(await run(put('a', 10))).toBe('OK');
    log.pendingBytes = fullLogBytes + 1;
    pod.endTick();
    const shared = new TextReply();
    const done = [
      pod.execute(commandOf(put('a', 20), 0), shared),
      pod.executeAll([commandOf(put('b', 20), 0)], shared, () => true),
    ];
    shared.simple('of another command');
    expect(await run('get a')).toBe('x'.repeat(10));
    log.pendingBytes = 0;
    log.commit(Infinity);
    expect([textOf((await done[0])!), textOf((await done[1])!)]).toEqual(['OK', 'OK']);
    expect(textOf(shared)).toBe('of another command');
    expect(await run('get a')).toBe('x'.repeat(20));
  });
});

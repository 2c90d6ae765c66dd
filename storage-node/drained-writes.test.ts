// Writes that wait until earlier ones are committed, as those could have to be undone.

import { expect, test } from 'vitest';
import { MemoryEngine } from '../engines/memory/memory-engine.ts';
import { MemoryDisk } from '../engines/memory/testing/memory-disk.ts';
import { commandOf, TestClock, TextReply } from './pod-fixture.ts';
import { Pod } from './pod.ts';
import { UnreliableCluster, UnreliableLog } from './replicator/testing/unreliable-log.ts';
import { noRules } from './table-rules.ts';

test('are answered in an answer of their own: that of the caller goes on', async () => {
  const engine = new MemoryEngine({ directory: 'rows', disk: new MemoryDisk() });
  await engine.open();
  const log = new UnreliableLog(new UnreliableCluster(), 1, 0);
  const pod = new Pod({
    ...{ engine, log, group: 5, tables: new Map([[0, noRules]]) },
    clock: new TestClock(),
    rng: { next: () => 0.5 },
    maxMemoryBytes: Infinity,
    checkpointBytes: Infinity,
    report: (_level, message) => expect.unreachable(message),
  });
  await log.lead();
  const shared = new TextReply();
  const run = (line: string): unknown => pod.execute(commandOf(line, 0), shared);
  expect(run(`put a ${'x'.repeat(3_000_000)}`)).toBe(undefined);
  // To undo it takes three megabytes.
  expect(run('put a y')).toBe(undefined);
  const done = [
    run('put b z'),
    pod.executeAll([commandOf('put c z', 0)], shared, (own) => {
      own.array(1);
      return true;
    }),
  ];
  expect(run('get a')).toBe(undefined);
  pod.endTick();
  log.commit(Infinity);
  expect((await Promise.all(done)).map(String)).toEqual(['OK', '*1 OK']);
  expect(run('get b')).toBe(undefined);
  expect(String(shared)).toBe('OK OK y z');
  await pod.close();
});

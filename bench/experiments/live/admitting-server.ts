// A Redis server whose pod has admission before it, in a process of its own, which can tell where its processor time
// goes. Told by messages of its parent: `{ set: AdmissionOptions }`, `'profile'` and `'report'`.

import { Session } from 'node:inspector/promises';
import type { Profiler } from 'node:inspector';
import { Principals } from '../../../access/gateway/principals.ts';
import { Router } from '../../../access/gateway/router.ts';
import { allCommands } from '../../../access/redis/commands/all.ts';
import { CommandRegistry } from '../../../access/redis/commands/registry.ts';
import { type OutputLimit, RedisServer } from '../../../access/redis/server.ts';
import { openLogPod } from '../../support/log-pod.ts';
import { type AdmissionOptions, AdmittingExecutor } from './admitting-executor.ts';

export interface ServerOptions {
  directory: string;
  port: number;
}

export type ServerOrder = { set: AdmissionOptions } | 'profile' | 'report';

export interface ServerReport {
  /** Samples of the profile in which the process did anything, and those in code of admission. */
  busy: number;
  admission: number;
  idle: number;
  refused: number;
}

const samplingMicros = 100;
/**
 * The policies, what they are made of that nobody else in this process uses, and who asks them: a profile takes what
 * was inlined for its caller's.
 */
const admissionFiles = [
  '/storage-node/admission/',
  '/request-units/token-bucket.',
  '/request-units/heap.',
  '/live/admitting-executor.',
];
const tickMs = 5;
const unlimited: OutputLimit = { hardBytes: 0, softBytes: 0, softSeconds: 0 };

function tally({ nodes, samples }: Profiler.Profile, refused: number): ServerReport {
  const report: ServerReport = { busy: 0, admission: 0, idle: 0, refused };
  const byId = new Map(nodes.map((node) => [node.id, node.callFrame]));
  for (const id of samples ?? []) {
    const { functionName, url } = byId.get(id)!;
    if (functionName === '(idle)') {
      report.idle++;
      continue;
    }
    report.busy++;
    if (admissionFiles.some((file) => url.includes(file))) report.admission++;
  }
  return report;
}

async function main({ directory, port }: ServerOptions): Promise<void> {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.setSamplingInterval', { interval: samplingMicros });
  // Code that is compiled while there is a profiler keeps what it takes to tell inlined functions apart.
  await session.post('Profiler.start');

  const pod = await openLogPod('group', 'everysec', directory);
  const executor = new AdmittingExecutor(pod);
  const router = new Router();
  router.set({ executor, mayWait: false });
  const server = new RedisServer({
    host: '127.0.0.1',
    port,
    backlog: 511,
    maxClients: 10_000,
    idleTimeout: 0,
    loginTimeoutMs: 0,
    tcpKeepAliveSeconds: 300,
    principals: new Principals({ databases: 1 }),
    maxBulkBytes: 2 ** 29,
    maxQueryBytes: 2 ** 30,
    slowlogMs: 10,
    slowlogLength: 128,
    outputLimits: { normal: unlimited, pubsub: unlimited },
    registry: new CommandRegistry(allCommands),
    router,
    config: [],
    report: (level, message, fields) => console.error(level, message, fields),
    facts: {
      version: '0.0.0',
      runId: '0'.repeat(40),
      startedAt: Date.now(),
      executable: process.execPath,
      configFile: '',
      dataDirectory: directory,
      usedMemory: () => pod.engineStats().memoryBytes,
      peakMemory: () => pod.engineStats().memoryBytes,
      persistence: () => ({}),
      tableSize: (table) => pod.tableSize(table),
      lookups: () => ({ hits: 0, misses: 0 }),
      expiredRows: () => pod.expiredRows,
      checkpoint: () => pod.checkpoint(),
      lastCheckpointAt: () => 0,
      checkpointInProgress: () => false,
      shutdown: () => process.kill(process.pid, 'SIGTERM'),
    },
  });
  let last = performance.now();
  setInterval(() => {
    const now = performance.now();
    executor.tick(now, Math.max(0, now - last - tickMs));
    last = now;
  }, tickMs);
  const obey = async (order: ServerOrder): Promise<void> => {
    if (order === 'profile') {
      await session.post('Profiler.stop');
      await session.post('Profiler.start');
      process.send!('profiling');
    } else if (order === 'report') {
      const { profile } = await session.post('Profiler.stop');
      await session.post('Profiler.start');
      process.send!(tally(profile, executor.refused));
    } else {
      executor.set(order.set);
      process.send!('set');
    }
  };
  process.on('message', (order: ServerOrder) => void obey(order));
  process.once('SIGTERM', () => {
    void server.drain(0).then(async () => {
      await pod.close();
      process.exit(0);
    });
  });
  await server.listen();
  process.send!('ready');
}

await main(JSON.parse(process.argv[2] ?? '') as ServerOptions);

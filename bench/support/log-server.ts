// A Redis server whose only pod has our log or a bare one, in a process of its own:
// `node log-server.js '{"log":"group","port":7000,...}'`, until SIGTERM.

import { Principals } from '../../access/gateway/principals.ts';
import { Router } from '../../access/gateway/router.ts';
import { allCommands } from '../../access/redis/commands/all.ts';
import { CommandRegistry } from '../../access/redis/commands/registry.ts';
import type { OutputLimit } from '../../access/redis/output-limits.ts';
import { RedisServer } from '../../access/redis/server.ts';
import type { ServerFacts } from '../../access/redis/server-facts.ts';
import type { FsyncPolicy } from '../../storage-node/replicator/partition-log.ts';
import type { Pod } from '../../storage-node/pod.ts';
import { openLogPod, type LogKind } from './log-pod.ts';

export interface LogServerOptions {
  log: LogKind;
  fsync: FsyncPolicy;
  directory: string;
  port: number;
}

const unlimited: OutputLimit = { hardBytes: 0, softBytes: 0, softSeconds: 0 };

function factsOf(pod: Pod, directory: string): ServerFacts {
  return {
    version: '0.0.0',
    runId: '0'.repeat(40),
    startedAt: Date.now(),
    executable: process.execPath,
    configFile: '',
    dataDirectory: directory,
    memory: () => ({ used: 1, peak: 1, startup: 0, uncounted: 0, held: 1 }),
    persistence: () => ({}),
    tableSize: (table) => pod.tableSize(table),
    lookups: () => ({ hits: 0, misses: 0 }),
    evictedRows: () => 0,
    expiredRows: () => pod.expiredRows,
    checkpoint: () => pod.checkpoint(),
    synced: () => pod.synced(),
    lastCheckpointAt: () => 0,
    checkpointInProgress: () => false,
    shutdown: () => process.kill(process.pid, 'SIGTERM'),
  };
}

async function main({ log, fsync, directory, port }: LogServerOptions): Promise<void> {
  const pod = await openLogPod(log, fsync, directory);
  const router = new Router();
  router.set({ executor: pod, pods: [pod], mayWait: false });
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
    busyReplyMs: 5000,
    slowlogLength: 128,
    outputLimits: { normal: unlimited, pubsub: unlimited },
    registry: new CommandRegistry(allCommands),
    router,
    config: [],
    report: (level, message, fields) => console.error(level, message, fields),
    facts: factsOf(pod, directory),
  });
  process.once('SIGTERM', () => {
    void server.drain(0).then(async () => {
      await pod.close();
      process.exit(0);
    });
  });
  await server.listen();
}

await main(JSON.parse(process.argv[2] ?? '') as LogServerOptions);

// A Redis plane in the process of the test: the real listener and a real pod, over a disk in memory, with tenants
// as the test makes them. What the control plane would do with a user is done here, at once.

import type { AdmissionRules } from '../../access/admission/admission-rules.ts';
import { GatewayAdmission } from '../../access/admission/gateway-admission.ts';
import type { RequestMemory } from '../../access/admission/request-memory.ts';
import { Principals } from '../../access/gateway/principals.ts';
import { Router } from '../../access/gateway/router.ts';
import { allCommands } from '../../access/redis/commands/all.ts';
import { CommandRegistry } from '../../access/redis/commands/registry.ts';
import { ReadCache, type RememberedTable } from '../../access/redis/read-cache.ts';
import { RedisServer } from '../../access/redis/server.ts';
import { RedisPlaneMeter } from '../../server/planes/redis-metering.ts';
import { RedisTables } from '../../server/planes/redis-tables.ts';
import type { Engine } from '../../engines/engine.ts';
import { MemoryEngine } from '../../engines/memory/memory-engine.ts';
import type { AdmissionController } from '../../storage-node/admission/admission-controller.ts';
import { FaultyDisk } from '../../storage-node/disk/faulty-disk.ts';
import { openPod } from '../../storage-node/pod-host.ts';
import type { Pod } from '../../storage-node/pod.ts';
import { shippedTable } from '../../request-units/pru-table.ts';
import { systemClock, systemRng } from '../../universal-row/environment.ts';
import type { PartitionAdmission } from '../../contracts/partition-admission.ts';
import {
  noLimits,
  type TenancyUpdate,
  type TenantDefinition,
  type UserDefinition,
} from '../../contracts/tenancy/definitions.ts';
import { quickSecret } from '../support/quick-secret.ts';
import { RespClient } from '../support/resp-client.ts';

export const databases = 16;
/** As the control plane gives them out. */
export const firstTenantTable = 4096;
const unlimited = { hardBytes: 0, softBytes: 0, softSeconds: 0 };

export interface TenantsServerOptions {
  /** Memory for requests in progress; not counted when absent. */
  memory?: RequestMemory;
  /** 20,000 when left out. */
  maxClients?: number;
  /** No limit when left out. */
  loginTimeoutMs?: number;
  defaultPassword?: string;
  config?: readonly { name: string; get(): string }[];
  /** With these, what tenants spend is charged, and their limits hold. */
  limits?: Partial<AdmissionRules>;
  /** The pod's admission stage; without it every request runs at once. */
  podAdmission?: AdmissionController;
  /** Ceilings of partitions. */
  partitions?: PartitionAdmission;
  /** Tables whose answers are cached. */
  remembered?: readonly RememberedTable[];
  /** In place of one in memory; told whose a table is, by the tenant's number. */
  engine?: (ownerOf: (table: number) => number | undefined) => Engine;
  /** Told of failures; they are thrown otherwise. */
  failed?: (message: string, fields?: object) => void;
  /** Told of what is logged below the level of failures. */
  logged?: (message: string) => void;
}

export class TenantsServer {
  readonly principals: Principals;
  readonly pod: Pod;
  readonly redis: RedisServer;
  readonly tables: RedisTables;
  readonly meter: RedisPlaneMeter;
  readonly admission: GatewayAdmission;
  readonly #opened: RespClient[] = [];
  #revision = 0;
  #nextNumber = 1;

  private constructor(
    parts: Pick<TenantsServer, 'principals' | 'pod' | 'redis' | 'tables' | 'meter' | 'admission'>,
  ) {
    this.meter = parts.meter;
    this.admission = parts.admission;
    this.principals = parts.principals;
    this.pod = parts.pod;
    this.redis = parts.redis;
    this.tables = parts.tables;
  }

  /** As the plane does before a large entry of the log; tests look at that moment. */
  endTick(): void {
    this.redis.tick.end();
  }

  static async start(options: TenantsServerOptions = {}): Promise<TenantsServer> {
    const { defaultPassword = '', config = [], limits, podAdmission, partitions } = options;
    const { remembered, engine, failed, logged } = options;
    const principals = new Principals({ databases, defaultPassword });
    const pods: Pod[] = [];
    const tables = new RedisTables('memory', () => pods);
    const pod = await openPod({
      engine: engine?.((table) => tables.ownerOf(table)?.number) ?? new MemoryEngine(),
      disk: new FaultyDisk({ rng: systemRng }),
      directory: '/data',
      podId: 1,
      fsync: 'no',
      segmentBytes: 64 * 1024 * 1024,
      checkpointBytes: Infinity,
      maxMemoryBytes: Infinity,
      tables: tables.rulesOf('memory'),
      clock: systemClock,
      rng: systemRng,
      report: () => {},
      fatal: (error) => {
        throw error;
      },
      acceptLoss: false,
      beforeLargeEntry: () => server.endTick(),
    });
    pods.push(pod);
    pod.start();
    const meter = new RedisPlaneMeter(shippedTable, (table) => tables.ownerOf(table));
    const { meter: accounts } = meter.plane;
    const admission = new GatewayAdmission({
      clock: systemClock,
      rules: { enabled: limits !== undefined, ...limits },
      accountOf: (tenant) => accounts.account(tenant),
    });
    const router = new Router();
    // Only answers that are written aside are remembered.
    const mayWait = engine !== undefined || remembered !== undefined;
    router.set({ executor: pod, pods: [pod], mayWait, pricer: meter.pricerOf('memory') });
    const users = {
      setUser: async (tenant: string, name: string, change: Partial<UserDefinition>) => {
        server.user(tenant, name, change);
      },
      dropUser: async (tenant: string, name: string) => server.dropUser(tenant, name),
    };
    const redis = new RedisServer({
      pauseChanged: (isPaused) => pod.keepExpired(isPaused),
      host: '127.0.0.1',
      port: 0,
      backlog: 511,
      ...(options.memory === undefined ? {} : { memory: options.memory }),
      maxClients: options.maxClients ?? 20_000,
      idleTimeout: 0,
      loginTimeoutMs: options.loginTimeoutMs ?? 0,
      tcpKeepAliveSeconds: 0,
      principals,
      users,
      maxBulkBytes: 2 ** 24,
      maxQueryBytes: 2 ** 26,
      slowlogMs: Infinity,
      busyReplyMs: 5000,
      slowlogLength: 128,
      metering: limits === undefined ? undefined : meter.metering,
      admission,
      ...(partitions === undefined ? {} : { partitions }),
      podAdmission,
      outputLimits: { normal: unlimited, pubsub: unlimited },
      registry: new CommandRegistry(allCommands),
      router,
      config,
      report: (level, message, fields) => {
        if (level !== 'error') {
          logged?.(message);
          return;
        }
        if (failed === undefined) throw new Error(`${message}: ${JSON.stringify(fields)}`);
        failed(message, fields);
      },
      facts: {
        version: 'test',
        runId: 'f'.repeat(40),
        startedAt: Date.now(),
        executable: '/secret/path',
        configFile: '',
        dataDirectory: '/data',
        memory: () => ({ used: 1, peak: 1, startup: 0, uncounted: 0, held: 1 }),
        persistence: () => ({}),
        tableSize: (table) => pod.tableSize(table),
        lookups: () => ({ hits: 0, misses: 0 }),
        evictedRows: () => 0,
        expiredRows: () => 0,
        checkpoint: async () => {},
        synced: async () => {},
        lastCheckpointAt: () => 0,
        checkpointInProgress: () => false,
        shutdown: () => {
          throw new Error('nobody may stop a test');
        },
      },
    });
    if (remembered !== undefined) {
      redis.cache = new ReadCache({
        rng: systemRng,
        reload: (table, key, load) => redis.otherPods.reload(table, key, load),
      });
      redis.cache.resize(2 ** 24);
      redis.cache.setTables(remembered);
    }
    if (podAdmission !== undefined) podAdmission.cpu.afterSlice = redis.tick.end;
    const server = new TenantsServer({ principals, pod, redis, tables, meter, admission });
    server.update({ tenants: [principals.tenant('default')!] });
    await redis.listen();
    return server;
  }

  async stop(): Promise<void> {
    for (const client of this.#opened) client.close();
    await this.redis.drain(0);
    await this.pod.close();
  }

  // ---- what the control plane does

  update(parts: Partial<TenancyUpdate>): void {
    const gone = { tenants: [], users: [], tokens: [], ...parts.gone };
    const update: TenancyUpdate = {
      whole: false,
      revision: ++this.#revision,
      tenants: [],
      users: [],
      tokens: [],
      ...parts,
      gone,
    };
    this.tables.follow(update);
    this.principals.update(update);
    this.admission.update(update);
  }

  /** A new tenant, whose user `default` has the tenant's name for a password. */
  tenant(name: string, change: Partial<TenantDefinition> = {}): TenantDefinition {
    const number = this.#nextNumber++;
    const firstTable = firstTenantTable + (number - 1) * databases;
    const tenant: TenantDefinition = {
      name,
      number,
      state: 'active',
      firstTable,
      databases,
      limits: noLimits,
      ...change,
    };
    this.update({ tenants: [tenant] });
    this.user(name, 'default', { secrets: [quickSecret(name)], rules: '~* &* +@all' });
    return tenant;
  }

  alter(name: string, change: Partial<TenantDefinition>): void {
    this.update({ tenants: [{ ...this.principals.tenant(name)!, ...change }] });
  }

  user(tenant: string, name: string, change: Partial<UserDefinition> = {}): void {
    const before = this.principals.user(tenant, name) ?? {
      tenant,
      name,
      enabled: true,
      open: false,
      secrets: [],
      rules: '-@all',
      influxAdmin: false,
      grants: {},
    };
    this.update({ users: [{ ...before, ...change }] });
  }

  dropUser(tenant: string, name: string): void {
    this.update({ gone: { tenants: [], users: [`${name}@${tenant}`], tokens: [] } });
  }

  /** Drops a tenant as the control plane does. */
  async drop(name: string): Promise<void> {
    const { number, firstTable } = this.principals.tenant(name)!;
    this.alter(name, { state: 'dropping' });
    await this.pod.dropTables({ first: firstTable, count: databases });
    this.update({ gone: { tenants: [name], users: [], tokens: [] } });
    if (this.tables.tenant(number) !== undefined) throw new Error(`${name} is still there`);
  }

  // ---- clients

  /** Client logged in as this user, or not logged in. */
  async client(name?: string, password = name, version: 2 | 3 = 2): Promise<RespClient> {
    const client = await RespClient.connect(this.redis.port);
    this.#opened.push(client);
    if (name !== undefined) {
      const answer = await client.text('AUTH', name, password ?? '');
      if (answer !== '+OK') throw new Error(`AUTH ${name}: ${answer}`);
    }
    if (version === 3) await client.command('HELLO', 3);
    return client;
  }
}

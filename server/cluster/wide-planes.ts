// The data planes of all nodes of a cluster, as the admin API of any of them sees them: their
// reports on clients, keys and costs are combined, and databases are created at their leaders.
// Nodes out of reach, and those that do not answer in time, are left out.

import type { AuditLog, AuditRecord } from '../../control/admin/audit/audit-log.ts';
import {
  type AuditQuery,
  readAudit,
  type WideAudit,
} from '../../control/admin/audit/wide-audit.ts';
import { ClusterError } from '../../control/cluster/cluster-admin.ts';
import type { PlaneAccess } from '../../control/admin/plane-access.ts';
import type { Json } from '../../control/metadata/document-store.ts';
import type { DatabaseInfo } from '../../control/monitor/database-info.ts';
import type { TenantAdmission } from '../../control/monitor/tenant-admission.ts';
import type { TopEntry } from '../../control/monitor/top.ts';
import type { UsageHistory, UsageQuery, UsageRow } from '../../control/monitor/usage-history.ts';
import { nodeOfReplica } from '../../storage-node/replicator/raft/replica-id.ts';
import { clientOfNode, numberAtNode } from '../../universal-row/command.ts';
import type { PlaneArgument, PlaneResult } from '../planes/messages.ts';
import type { PlaneHost, Planes } from '../planes/plane-host.ts';
import type { ClusterMetadata } from './cluster-metadata.ts';
import type { ClusterNode } from './cluster-node.ts';

const questions = {
  plane: 'admin/plane',
  usage: 'admin/usage',
  audit: 'admin/audit',
} as const;
const answerMs = 2000;
/** Timeout of a change: a newly created group may have no leader yet. */
const changeMs = 5000;
const retryMs = 100;

const told = [
  ...(['admission', 'top', 'slowlog', 'steps', 'databases', 'queries'] as const),
  // Nodes of earlier releases ask for the first of these.
  ...(['rowCount', 'partitionSizes'] as const),
];
const changes = ['createDatabase', 'dropDatabase'] as const;
type Told = (typeof told)[number];
type Change = (typeof changes)[number];
type PlaneName = keyof Planes;

interface Order {
  readonly plane: PlaneName;
  readonly call: Told | Change;
  readonly argument: Json;
}

export class WidePlanes {
  readonly #metadata: ClusterMetadata;
  readonly #node: ClusterNode;

  constructor(planes: Planes, metadata: ClusterMetadata, node: ClusterNode) {
    this.#metadata = metadata;
    this.#node = node;
    metadata.handlers.on(questions.plane, async (body) => {
      const { plane, call, argument } = body as unknown as Order;
      const isKnown = [...told, ...changes].includes(call) && Object.hasOwn(planes, plane);
      if (!isKnown) throw new Error('no such question');
      const host: PlaneHost = planes[plane];
      // Which argument belongs to which call is fixed by `#ask`.
      const answer = await host.call(call, argument as never, changeMs);
      return (answer ?? null) as unknown as Json;
    });
  }

  /** Makes this node's usage available to other nodes. */
  tellUsage(history: UsageHistory, refresh: () => Promise<void>): void {
    this.#metadata.handlers.on(questions.usage, async (body) => {
      await refresh();
      return history.rows(body as unknown as UsageQuery) as unknown as Json;
    });
  }

  /** Usage through other nodes. */
  async usage(query: UsageQuery): Promise<UsageRow[]> {
    const own = this.#metadata.identity.node;
    const others = this.#reachable().filter((node) => node !== own);
    const body = query as unknown as Json;
    const answers = await Promise.allSettled(
      others.map((node) => this.#metadata.ask(node, questions.usage, body, answerMs)),
    );
    return answers.flatMap((answer) =>
      answer.status === 'fulfilled' ? (answer.value as unknown as UsageRow[]) : [],
    );
  }

  /** From now on this node's audit trail is read through other nodes; returns the way to theirs. */
  tellAudit(log: AuditLog): WideAudit {
    const { identity, handlers } = this.#metadata;
    handlers.on(questions.audit, (body) => {
      return Promise.resolve(readAudit(log, body as unknown as AuditQuery) as unknown as Json);
    });
    const ask = async (node: number, query: AuditQuery): Promise<AuditRecord[]> => {
      const body = query as unknown as Json;
      return (await this.#metadata.ask(
        node,
        questions.audit,
        body,
        answerMs,
      )) as unknown as AuditRecord[];
    };
    return {
      node: identity.node,
      of: async (node, query) => {
        const isKnown = this.#metadata.reachability().some((one) => one.node === node);
        if (!isKnown) throw new ClusterError(404, `there is no node ${node}`);
        try {
          return await ask(node, query);
        } catch {
          throw new ClusterError(503, `node ${node} does not answer`);
        }
      },
      all: async (query) => {
        const nodes = this.#metadata.reachability().map(({ node }) => node);
        const asked = await Promise.allSettled(nodes.map((node) => ask(node, query)));
        return {
          answers: asked.flatMap((one, i) =>
            one.status === 'fulfilled' ? [{ node: nodes[i]!, records: one.value }] : [],
          ),
          silent: nodes.filter((_, i) => asked[i]!.status === 'rejected'),
        };
      },
    };
  }

  access(): PlaneAccess[] {
    return (['redis', 'influx'] as const).map((name): PlaneAccess => {
      return {
        name,
        admission: async (query) => sumAdmission(await this.#all(name, 'admission', query)),
        top: async (query) => {
          const merged = sumTop((await this.#all(name, 'top', query)).map(({ answer }) => answer));
          return merged.sort((a, b) => b[query.by] - a[query.by]).slice(0, query.limit);
        },
        slowlog: async (query) => newest(await this.#all(name, 'slowlog', query), query.limit),
        steps: async (query) => newest(await this.#all(name, 'steps', query), query.limit),
        databases: async (tenant) =>
          (name === 'influx' ? await this.#seriesDatabases(tenant) : undefined) ??
          sumDatabases(await this.#all(name, 'databases', tenant)),
        createDatabase: (database) => this.#change(name, 'createDatabase', database),
        dropDatabase: (database) => this.#change(name, 'dropDatabase', database),
      };
    });
  }

  /** Number of rows of a table, counted on the leader of each part; undefined if a leader does not answer. */
  async rowCount(table: number, partitions: readonly number[]): Promise<number | undefined> {
    const led = new Map((await this.sizes(table)).map(({ number, rows }) => [number, rows]));
    if (partitions.some((number) => !led.has(number))) return undefined;
    return partitions.reduce((sum, number) => sum + led.get(number)!, 0);
  }

  /** Rows of each partition of a table that has a leader which answers. */
  async sizes(table: number): Promise<{ number: number; rows: number }[]> {
    const rows = new Map<number, number>();
    for (const { answer } of await this.#all('redis', 'partitionSizes', table)) {
      for (const one of answer) rows.set(one.number, (rows.get(one.number) ?? 0) + one.rows);
    }
    return Array.from(rows, ([number, sum]) => ({ number, rows: sum }));
  }

  /** Running queries of InfluxDB clients at other nodes. */
  async queries(of: PlaneArgument<'queries'>): Promise<PlaneResult<'queries'>> {
    const own = this.#metadata.identity.node;
    const isAsked = (node: number): boolean =>
      node !== own && (of.kill === undefined || numberAtNode(of.kill, node) !== undefined);
    const nodes = this.#reachable().filter(isAsked);
    const answers = await Promise.allSettled(
      nodes.map((node) => this.#ask(node, 'influx', 'queries', of, answerMs)),
    );
    return answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  }

  #reachable(): number[] {
    return this.#metadata
      .reachability()
      .filter(({ reachable }) => reachable)
      .map(({ node }) => node);
  }

  async #all<K extends Told>(
    plane: PlaneName,
    call: K,
    argument: PlaneArgument<K>,
  ): Promise<Answer<PlaneResult<K>>[]> {
    const nodes = this.#reachable();
    const own = this.#metadata.identity.node;
    const asked = nodes.map(async (node) => {
      return { node, answer: await this.#ask(node, plane, call, argument, answerMs) };
    });
    const answers = await Promise.allSettled(asked);
    return answers.flatMap((answer, i) => {
      if (answer.status === 'fulfilled') return [answer.value];
      // A failure of this node itself is an error, as on a single server.
      if (nodes[i] === own) throw answer.reason;
      return [];
    });
  }

  async #ask<K extends Told | Change>(
    node: number,
    plane: PlaneName,
    call: K,
    argument: PlaneArgument<K>,
    ms: number,
  ): Promise<PlaneResult<K>> {
    const body = { plane, call, argument } as unknown as Json;
    return (await this.#metadata.ask(node, questions.plane, body, ms)) as PlaneResult<K>;
  }

  /** Where the tenant's time series are led. */
  async #change(
    plane: PlaneName,
    call: Change,
    database: PlaneArgument<'createDatabase'>,
  ): Promise<void> {
    const until = performance.now() + changeMs;
    for (;;) {
      const node = await this.#leaderOf(database.tenant);
      if (node !== undefined) {
        await this.#ask(node, plane, call, database, changeMs);
        return;
      }
      if (performance.now() > until) {
        throw new ClusterError(503, 'the time series of the tenant have no leader at present');
      }
      await new Promise((resolve) => setTimeout(resolve, retryMs));
    }
  }

  /** As their leader has them: replicas that follow may be behind. Undefined while no leader answers. */
  async #seriesDatabases(tenant: number): Promise<DatabaseInfo[] | undefined> {
    const leader = await this.#leaderOf(tenant);
    if (leader === undefined) return undefined;
    try {
      const answer = await this.#ask(leader, 'influx', 'databases', tenant, answerMs);
      return sumDatabases([{ node: leader, answer }]);
    } catch {
      // It has gone, or does not answer in time: the others answer with what they have.
      return undefined;
    }
  }

  async #leaderOf(tenant: number): Promise<number | undefined> {
    const groups = this.#node.view.groups.filter((one) => one.model === 'tsm');
    // Of series that are divided, changes go to the node that leads the first partition.
    const group = groups.find(
      ({ tenant: owner, series }) => owner === tenant && (series?.partition ?? 0) === 0,
    )?.group;
    if (group === undefined) return undefined;
    const replicas = await this.#node.replicas();
    const leading = replicas.find((one) => one.group === group && one.role === 'leader');
    return leading && nodeOfReplica(leading.replica);
  }
}

interface Answer<T> {
  readonly node: number;
  readonly answer: T;
}

/** Limits are shared out to the nodes, so that shares, too, are added up. */
function sumAdmission(answers: readonly Answer<TenantAdmission[]>[]): TenantAdmission[] {
  const sums = new Map<number, Record<string, number>>();
  for (const one of answers.flatMap(({ answer }) => answer)) {
    const sum = sums.get(one.tenant);
    if (sum === undefined) sums.set(one.tenant, { ...one });
    else for (const [name, value] of Object.entries(one)) sum[name] = (sum[name] ?? 0) + value;
  }
  return Array.from(sums, ([tenant, sum]) => ({ ...sum, tenant }) as unknown as TenantAdmission);
}

function sumTop(answers: readonly TopEntry[][]): TopEntry[] {
  const sums = new Map<string, TopEntry>();
  for (const entry of answers.flat()) {
    const key = JSON.stringify([entry.kind, entry.tenant, entry.database, entry.name]);
    const sum = sums.get(key);
    if (sum === undefined) sums.set(key, { ...entry });
    else {
      sum.ru += entry.ru;
      sum.rate += entry.rate;
      sum.bytes = Math.max(sum.bytes, entry.bytes);
    }
  }
  return [...sums.values()];
}

/** Entry numbers are the node's own, with the node's number in their high bits. */
function newest<T extends { id: number; at: number }>(
  answers: readonly Answer<T[]>[],
  limit: number,
): T[] {
  const all = answers.flatMap(({ node, answer }) =>
    answer.map((entry) => ({ ...entry, id: clientOfNode(node, entry.id) })),
  );
  return all.sort((a, b) => b.at - a.at).slice(0, limit);
}

/** Rows are counted where they are led. */
function sumDatabases(answers: readonly Answer<DatabaseInfo[]>[]): DatabaseInfo[] {
  const sums = new Map<number | string, DatabaseInfo>();
  for (const one of answers.flatMap(({ answer }) => answer)) {
    const sum = sums.get(one.name);
    if (sum === undefined) sums.set(one.name, { ...one });
    else if (one.rows !== undefined) sum.rows = (sum.rows ?? 0) + one.rows;
  }
  return [...sums.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

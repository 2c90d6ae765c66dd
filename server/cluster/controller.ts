// Brings the cluster to its wanted state, on the node that leads the metadata: asks all nodes for
// the state of their replicas, plans (control/cluster/plan.ts), and records the changes, which the
// nodes carry out. It has no state that the next leader of the metadata would need.

import type { ReplicaStatus } from '../../contracts/cluster.ts';
import type { ClusterState, GroupChange, PlanPolicy } from '../../control/cluster/cluster-state.ts';
import { plan } from '../../control/cluster/plan.ts';
import { type Catalogs, purposesOf } from '../../control/cluster/purposes.ts';
import { purposeKey } from '../../control/cluster/cluster-state.ts';
import { type DocumentChange, RevisionConflict } from '../../control/metadata/document-store.ts';
import type { ClusterMetadata } from './cluster-metadata.ts';
import { GroupDocuments, movesCollection } from './group-documents.ts';
import { groupQuestions, type TransferOrder } from './group-questions.ts';

interface ControllerOptions {
  metadata: Pick<
    ClusterMetadata,
    | 'store'
    | 'copyOf'
    | 'isLatest'
    | 'isLeader'
    | 'onLeader'
    | 'onNodes'
    | 'onReachable'
    | 'status'
    | 'ask'
  >;
  /** As they are on this node now. */
  catalogs: () => Catalogs;
  policy: () => PlanPolicy;
  report: (message: string) => void;
  now?: () => number;
}

const roundMs = 1000;
/** Longest time between two rounds of a cluster where all is as it should be. */
const calmMs = 5000;
/** Milliseconds from a hint to the round that follows. Hints come in bursts. */
const hintMs = 50;
const statusTimeoutMs = 2000;
/** Time that the voters have to confirm the state before it is changed. */
const latestMs = 3000;
const transferTimeoutMs = 5000;
/** Collections whose changes may call for groups. */
const watched: readonly string[] = ['tenants', 'tables', 'tableDefaults', 'nodes', movesCollection];

export class Controller {
  readonly #options: ControllerOptions;
  readonly #now: () => number;
  readonly #stops: (() => void)[] = [];
  readonly #purposelessSince = new Map<number, number>();
  readonly #transferredAt = new Map<number, number>();
  #timer: NodeJS.Timeout | undefined;
  #dueAt = Infinity;
  #running: Promise<void> | undefined;
  #closed = false;
  #lastFailure = '';

  constructor(options: ControllerOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
  }

  /** Works from here on whenever this node leads the metadata. */
  start(): void {
    const { metadata } = this.#options;
    this.#stops.push(
      metadata.onLeader((isLeader) => {
        this.#purposelessSince.clear();
        if (isLeader) this.#schedule(hintMs);
      }),
      metadata.onNodes(() => this.#schedule(hintMs)),
      metadata.onReachable(() => this.#schedule(hintMs)),
      metadata.store.watch(({ collection }: DocumentChange) => {
        if (watched.includes(collection)) this.#schedule(hintMs);
      }),
    );
    this.#schedule(hintMs);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    for (const stop of this.#stops.splice(0)) stop();
    await this.#running;
  }

  #schedule(ms: number): void {
    const at = performance.now() + ms;
    if (this.#closed || !this.#options.metadata.isLeader || at >= this.#dueAt) return;
    clearTimeout(this.#timer);
    this.#dueAt = at;
    this.#timer = setTimeout(() => {
      this.#dueAt = Infinity;
      if (this.#running !== undefined) {
        this.#schedule(hintMs);
        return;
      }
      this.#running = this.#run().finally(() => (this.#running = undefined));
    }, ms).unref();
  }

  async #run(): Promise<void> {
    let pauseMs = roundMs;
    try {
      const { changes, groups } = await this.round();
      if (changes.length === 0) pauseMs = Math.min(calmMs, roundMs + groups);
      this.#lastFailure = '';
    } catch (error) {
      // Reported once, not every second.
      const { message } = error as Error;
      if (message !== this.#lastFailure)
        this.#options.report(`the cluster cannot be looked after: ${message}`);
      this.#lastFailure = message;
    }
    this.#schedule(pauseMs);
  }

  /** Looks, plans and changes once. Rejects when the metadata are out of reach, or refuse a change. */
  async round(): Promise<{ changes: GroupChange[]; groups: number }> {
    const { metadata } = this.#options;
    // Most rounds find nothing to do. They read this node's copy, so that the group of the metadata can sleep.
    const { changes, groups } = await this.#planned();
    if (changes.length === 0 || this.#closed || !metadata.isLeader) return { changes: [], groups };
    // A leader that was stopped for a while may have a successor by now. It must not decide.
    if (!(await metadata.isLatest(latestMs))) {
      throw new Error('most nodes that keep the metadata are out of reach');
    }
    if (this.#closed || !metadata.isLeader) return { changes: [], groups };
    const planned = await this.#planned();
    if (this.#closed || !metadata.isLeader) return { changes: [], groups };
    await this.#carryOut(planned.changes, planned.documents);
    return { changes: planned.changes, groups };
  }

  /** What to change, according to this node's copy of the metadata. */
  async #planned(): Promise<{
    changes: GroupChange[];
    documents: GroupDocuments;
    groups: number;
  }> {
    const documents = GroupDocuments.copied(this.#options.metadata);
    const state = await this.#state(documents);
    const changes = plan(state, this.#options.policy(), this.#now());
    return { changes, documents, groups: state.groups.length };
  }

  async #state(documents: GroupDocuments): Promise<ClusterState> {
    const { metadata, catalogs } = this.#options;
    const { nodes } = await metadata.status();
    const asked = nodes
      .filter(({ reachable, state }) => reachable && state !== 'joining')
      .map(({ node }) => metadata.ask(node, groupQuestions.status, null, statusTimeoutMs));
    const answers = await Promise.allSettled(asked);
    const statuses = answers.flatMap((answer) =>
      answer.status === 'fulfilled' ? (answer.value as unknown as ReplicaStatus[]) : [],
    );
    const { groups, moves } = documents;
    const purposes = purposesOf(catalogs());
    this.#noteWithoutPurpose(groups, new Set(purposes.map(purposeKey)));
    return {
      nodes,
      groups,
      purposes,
      statuses,
      moves,
      purposelessSince: this.#purposelessSince,
      transferredAt: this.#transferredAt,
    };
  }

  #noteWithoutPurpose(groups: ClusterState['groups'], wanted: ReadonlySet<string>): void {
    const without = groups.filter((group) => !wanted.has(purposeKey(group)));
    const numbers = new Set(without.map(({ group }) => group));
    for (const group of this.#purposelessSince.keys()) {
      if (!numbers.has(group)) this.#purposelessSince.delete(group);
    }
    for (const group of numbers) {
      if (!this.#purposelessSince.has(group)) this.#purposelessSince.set(group, this.#now());
    }
  }

  async #carryOut(changes: readonly GroupChange[], documents: GroupDocuments): Promise<void> {
    const created = changes.filter((change) => change.kind === 'create');
    const transfers = changes.filter((change) => change.kind === 'transfer');
    const transferred = Promise.all(transfers.map((change) => this.#transfer(change)));
    try {
      if (created.length > 0) await this.#unlessConflict(documents.create(created));
      for (const change of changes) {
        if (change.kind === 'create' || change.kind === 'transfer') continue;
        await this.#unlessConflict(documents.change(change));
      }
    } finally {
      await transferred;
    }
  }

  /** Another writer changed the document: the next round sees the new state. */
  async #unlessConflict(change: Promise<void>): Promise<void> {
    try {
      await change;
    } catch (error) {
      if (!(error instanceof RevisionConflict)) throw error;
    }
  }

  async #transfer({ group, from, to }: GroupChange & { kind: 'transfer' }): Promise<void> {
    this.#transferredAt.set(group, this.#now());
    const order: TransferOrder = { group, to };
    try {
      await this.#options.metadata.ask(
        from,
        groupQuestions.transfer,
        { ...order },
        transferTimeoutMs,
      );
    } catch (error) {
      this.#options.report(
        `node ${from} did not hand the lead of group ${group} to node ${to}: ${(error as Error).message}`,
      );
    }
  }
}

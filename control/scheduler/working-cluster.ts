// The mutable copy of a model that a policy plans on: the place of each replica, and the load of
// each pod, if the proposals so far were carried out. Sums are kept up to date by every change, so
// that a change costs O(points x dimensions), however large the cluster is.

import type { ClusterModel } from './cluster-model.ts';
import type { Change } from './proposal.ts';

export class WorkingCluster {
  readonly model: ClusterModel;
  readonly points: number;
  readonly dimensionCount: number;
  /** `(pod * dimensionCount + dimension) * points + point`: units a second. */
  readonly podLoad: Float64Array;
  /** Bytes of the replicas on each pod. */
  readonly podBytes: Float64Array;
  /** LRU a second, and bytes, set aside on each pod. */
  readonly podAllocatedLru: Float64Array;
  readonly podAllocatedBytes: Float64Array;
  /** Per replica: its pod (-1 once removed), its partition, whether it leads. */
  readonly podOf: number[];
  readonly partitionOf: number[];
  readonly isLeader: boolean[];
  /** Replicas of each partition, and on each pod; in no particular order. */
  readonly replicasOfPartition: number[][] = [];
  readonly replicasOfPod: number[][];
  /** Per partition; grows with splits. */
  readonly tableOf: number[];
  readonly partitionBytes: number[];
  readonly partitionLru: number[];
  readonly partitionAllocatedBytes: number[];
  readonly leaderRow: number[];
  readonly leaderScale: number[];
  readonly followerRow: number[];
  readonly followerScale: number[];
  /** Node of each pod; node states. */
  readonly nodeOfPod: number[];
  readonly isNodeDisabled: boolean[];
  readonly poolOfNode: number[];
  readonly tenantQuota: number[];
  /** Subclusters with a node that is not active yet: a group comes in whole. */
  readonly halfAdded: ReadonlySet<number>;
  /** Replicas of each table in all. */
  readonly replicasOfTable: number[];
  gateways = 0;
  #rows: Float32Array;
  #rowCount: number;
  /** Place of a replica in the list of its pod. */
  readonly #place: number[];
  /** Replicas of a table on a pod: `table * pods + pod`. */
  readonly #tableOnPod = new Map<number, number>();

  constructor(model: ClusterModel) {
    const { pods, partitions, replicas } = model;
    this.model = model;
    this.points = model.points;
    this.dimensionCount = model.dimensions.length;
    this.podLoad = new Float64Array(pods.ids.length * this.dimensionCount * this.points);
    this.podBytes = new Float64Array(pods.ids.length);
    this.podAllocatedLru = new Float64Array(pods.ids.length);
    this.podAllocatedBytes = new Float64Array(pods.ids.length);
    this.podOf = Array.from(replicas.pod);
    this.partitionOf = Array.from(replicas.partition);
    this.isLeader = Array.from(replicas.isLeader, Boolean);
    this.replicasOfPod = pods.ids.map(() => []);
    this.tableOf = Array.from(partitions.table);
    this.partitionBytes = Array.from(partitions.bytes);
    this.partitionLru = Array.from(partitions.allocatedLru);
    this.partitionAllocatedBytes = Array.from(partitions.allocatedBytes);
    this.leaderRow = Array.from(partitions.leaderRow);
    this.leaderScale = Array.from(partitions.leaderScale);
    this.followerRow = Array.from(partitions.followerRow);
    this.followerScale = Array.from(partitions.followerScale);
    this.nodeOfPod = Array.from(pods.node);
    this.isNodeDisabled = model.nodes.ids.map(() => false);
    this.poolOfNode = Array.from(model.nodes.pool);
    this.halfAdded = new Set(
      pods.subcluster.filter(
        (of, pod) => of >= 0 && model.nodes.state[pods.node[pod]!] === 'adding',
      ),
    );
    this.tenantQuota = model.tenants.map(() => 0);
    model.tables.quota.forEach((quota, table) => {
      this.tenantQuota[model.tables.tenant[table]!]! += quota;
    });
    this.replicasOfTable = model.tables.ids.map(() => 0);
    this.#rows = model.rows;
    this.#rowCount = model.rows.length / (this.dimensionCount * this.points);
    this.#place = this.podOf.map(() => -1);
    for (const _ of partitions.ids) this.replicasOfPartition.push([]);
    for (let replica = 0; replica < this.podOf.length; replica++) {
      this.replicasOfPartition[this.partitionOf[replica]!]!.push(replica);
      this.#settle(replica, this.podOf[replica]!);
    }
  }

  get podCount(): number {
    return this.replicasOfPod.length;
  }

  get partitionCount(): number {
    return this.tableOf.length;
  }

  /** All rows, with those that splits have added. */
  get rows(): Float32Array {
    return this.#rows;
  }

  /** Where the series of a replica begins in `rows`, for one dimension. */
  seriesOf(replica: number, dimension: number): number {
    const partition = this.partitionOf[replica]!;
    const row = this.isLeader[replica] ? this.leaderRow[partition]! : this.followerRow[partition]!;
    return (row * this.dimensionCount + dimension) * this.points;
  }

  /** Factor of its series. */
  scaleOf(replica: number): number {
    const partition = this.partitionOf[replica]!;
    return this.isLeader[replica] ? this.leaderScale[partition]! : this.followerScale[partition]!;
  }

  /** Units a second at a point. */
  replicaLoad(replica: number, dimension: number, point: number): number {
    return this.rows[this.seriesOf(replica, dimension) + point]! * this.scaleOf(replica);
  }

  /** Where the series of a pod begins in `podLoad`. */
  podSeries(pod: number, dimension: number): number {
    return (pod * this.dimensionCount + dimension) * this.points;
  }

  leaderOf(partition: number): number | undefined {
    return this.replicasOfPartition[partition]!.find((replica) => this.isLeader[replica]);
  }

  /** Replicas of a table on a pod. */
  tableOnPod(table: number, pod: number): number {
    return this.#tableOnPod.get(table * this.podCount + pod) ?? 0;
  }

  holdsPartition(pod: number, partition: number): boolean {
    return this.replicasOfPartition[partition]!.some((replica) => this.podOf[replica] === pod);
  }

  nodeHoldsPartition(node: number, partition: number): boolean {
    return this.replicasOfPartition[partition]!.some(
      (replica) => this.nodeOfPod[this.podOf[replica]!] === node,
    );
  }

  /** Carries a change out. Throws a RangeError for one that makes no sense, as a transfer from a follower. */
  apply(change: Change): void {
    switch (change.kind) {
      case 'transfer-leader':
        return this.#transfer(change.partition, change.from, change.to);
      case 'move-replica':
        return this.#move(change.replica, change.toPod);
      case 'add-replica':
        return this.#add(change.partition, change.pod, false);
      case 'remove-replica':
        return this.#remove(change.replica);
      case 'split':
        return this.#split(change.partition, change.leftShare);
      case 'merge':
        return this.#merge(change.left, change.right);
      case 'set-quota':
        this.tenantQuota[change.tenant] = change.to;
        return;
      case 'scale-gateways':
        this.gateways = change.to;
        return;
      case 'move-node':
        this.poolOfNode[change.node] = change.toPool;
        return;
      case 'move-pod':
        this.nodeOfPod[change.pod] = change.toNode;
        return;
      case 'disable-node':
        this.isNodeDisabled[change.node] = true;
        return;
      case 'move-table':
        // The moves of its replicas follow as proposals of their own.
        return;
    }
  }

  #transfer(partition: number, from: number, to: number): void {
    if (!this.isLeader[from] || this.isLeader[to] || this.partitionOf[to] !== partition) {
      throw new RangeError(`replica ${to} cannot take over from ${from}`);
    }
    this.#addLoad(from, -1);
    this.#addLoad(to, -1);
    this.isLeader[from] = false;
    this.isLeader[to] = true;
    this.#addLoad(from, 1);
    this.#addLoad(to, 1);
  }

  #move(replica: number, toPod: number): void {
    if (this.holdsPartition(toPod, this.partitionOf[replica]!)) {
      throw new RangeError(`pod ${toPod} has a replica of that partition already`);
    }
    this.#leave(replica);
    this.#settle(replica, toPod);
  }

  #add(partition: number, pod: number, isLeader: boolean): void {
    if (this.holdsPartition(pod, partition)) {
      throw new RangeError(`pod ${pod} has a replica of that partition already`);
    }
    const replica = this.podOf.push(pod) - 1;
    this.partitionOf.push(partition);
    this.isLeader.push(isLeader);
    this.#place.push(-1);
    this.replicasOfPartition[partition]!.push(replica);
    this.#settle(replica, pod);
  }

  #remove(replica: number): void {
    this.#leave(replica);
    this.podOf[replica] = -1;
    const siblings = this.replicasOfPartition[this.partitionOf[replica]!]!;
    siblings.splice(siblings.indexOf(replica), 1);
  }

  #split(partition: number, leftShare: readonly number[]): void {
    const replicas = [...this.replicasOfPartition[partition]!];
    for (const replica of replicas) this.#leave(replica);
    const [lead, leadScale] = [this.leaderRow[partition]!, this.leaderScale[partition]!];
    const [follow, followScale] = [this.followerRow[partition]!, this.followerScale[partition]!];
    const bytesShare = leftShare.reduce((sum, share) => sum + share, 0) / leftShare.length;
    const right = this.tableOf.push(this.tableOf[partition]!) - 1;
    const rightShare = leftShare.map((share) => 1 - share);
    this.partitionBytes.push(this.partitionBytes[partition]! * (1 - bytesShare));
    this.partitionBytes[partition]! *= bytesShare;
    this.partitionLru.push(this.partitionLru[partition]! * (1 - bytesShare));
    this.partitionLru[partition]! *= bytesShare;
    this.partitionAllocatedBytes.push(this.partitionAllocatedBytes[partition]! * (1 - bytesShare));
    this.partitionAllocatedBytes[partition]! *= bytesShare;
    for (const [part, share] of [
      [partition, leftShare],
      [right, rightShare],
    ] as const) {
      this.leaderRow[part] = this.#scaledRow(lead, share);
      this.leaderScale[part] = leadScale;
      this.followerRow[part] = followScale === 0 ? follow : this.#scaledRow(follow, share);
      this.followerScale[part] = followScale;
    }
    this.replicasOfPartition.push([]);
    for (const replica of replicas) {
      const pod = this.podOf[replica]!;
      this.#settle(replica, pod);
      this.#add(right, pod, this.isLeader[replica]!);
    }
  }

  #merge(left: number, right: number): void {
    const pods = (partition: number): string =>
      this.replicasOfPartition[partition]!.map((replica) => this.podOf[replica]!)
        .sort((a, b) => a - b)
        .join();
    if (pods(left) !== pods(right)) throw new RangeError('replicas are not in the same pods');
    const kept = [...this.replicasOfPartition[left]!];
    for (const replica of kept) this.#leave(replica);
    for (const replica of [...this.replicasOfPartition[right]!]) this.#remove(replica);
    this.leaderRow[left] = this.#sumRow(
      [this.leaderRow[left]!, this.leaderScale[left]!],
      [this.leaderRow[right]!, this.leaderScale[right]!],
    );
    this.leaderScale[left] = 1;
    this.followerRow[left] = this.#sumRow(
      [this.followerRow[left]!, this.followerScale[left]!],
      [this.followerRow[right]!, this.followerScale[right]!],
    );
    this.followerScale[left] = 1;
    this.partitionBytes[left]! += this.partitionBytes[right]!;
    this.partitionLru[left]! += this.partitionLru[right]!;
    this.partitionAllocatedBytes[left]! += this.partitionAllocatedBytes[right]!;
    this.partitionBytes[right] = 0;
    this.partitionLru[right] = 0;
    this.partitionAllocatedBytes[right] = 0;
    for (const replica of kept) this.#settle(replica, this.podOf[replica]!);
  }

  #settle(replica: number, pod: number): void {
    const partition = this.partitionOf[replica]!;
    this.podOf[replica] = pod;
    this.#place[replica] = this.replicasOfPod[pod]!.push(replica) - 1;
    this.#count(partition, pod, 1);
    this.#addLoad(replica, 1);
  }

  #leave(replica: number): void {
    const [pod, partition] = [this.podOf[replica]!, this.partitionOf[replica]!];
    this.#addLoad(replica, -1);
    this.#count(partition, pod, -1);
    const there = this.replicasOfPod[pod]!;
    const last = there.pop()!;
    if (last !== replica) {
      there[this.#place[replica]!] = last;
      this.#place[last] = this.#place[replica]!;
    }
  }

  #count(partition: number, pod: number, by: 1 | -1): void {
    const table = this.tableOf[partition]!;
    const key = table * this.podCount + pod;
    this.#tableOnPod.set(key, (this.#tableOnPod.get(key) ?? 0) + by);
    this.replicasOfTable[table]! += by;
    this.podBytes[pod]! += by * this.partitionBytes[partition]!;
    this.podAllocatedLru[pod]! += by * this.partitionLru[partition]!;
    this.podAllocatedBytes[pod]! += by * this.partitionAllocatedBytes[partition]!;
  }

  #addLoad(replica: number, sign: 1 | -1): void {
    const factor = sign * this.scaleOf(replica);
    if (factor === 0) return;
    const pod = this.podOf[replica]!;
    let from = this.seriesOf(replica, 0);
    let to = this.podSeries(pod, 0);
    const end = from + this.dimensionCount * this.points;
    while (from < end) this.podLoad[to++]! += factor * this.#rows[from++]!;
  }

  #scaledRow(row: number, shares: readonly number[]): number {
    return this.#newRow((from, dimension) => this.#rows[from]! * shares[dimension]!, row);
  }

  #sumRow([a, aScale]: [number, number], [b, bScale]: [number, number]): number {
    const shift = (b - a) * this.dimensionCount * this.points;
    return this.#newRow(
      (from) => this.#rows[from]! * aScale + this.#rows[from + shift]! * bScale,
      a,
    );
  }

  #newRow(value: (from: number, dimension: number) => number, row: number): number {
    const length = this.dimensionCount * this.points;
    const at = this.#rowCount * length;
    if (at + length > this.#rows.length) {
      const grown = new Float32Array(Math.max(this.#rows.length * 2, at + length));
      grown.set(this.#rows);
      this.#rows = grown;
    }
    for (let i = 0; i < length; i++) {
      this.#rows[at + i] = value(row * length + i, Math.floor(i / this.points));
    }
    return this.#rowCount++;
  }
}

/** The model after the changes are applied in order. */
export function carriedOut(
  model: ClusterModel,
  proposals: readonly { change: Change }[],
): WorkingCluster {
  const cluster = new WorkingCluster(model);
  for (const { change } of proposals) cluster.apply(change);
  return cluster;
}

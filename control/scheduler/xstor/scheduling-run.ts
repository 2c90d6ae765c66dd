// State of one run of replica scheduling: the working copy, the anomalies of every pod, the candidates of pods with too
// many. Role switching and migration alternate on it.

import type { ClusterModel } from '../cluster-model.ts';
import { mostUsedDimension } from '../load-measures.ts';
import type { Proposal } from '../proposal.ts';
import { WorkingCluster } from '../working-cluster.ts';
import { Anomalies, type Change } from './anomalies.ts';
import { candidatesOf } from './candidates.ts';
import type { SchedulingParameters } from './parameters.ts';

export class SchedulingRun {
  readonly cluster: WorkingCluster;
  readonly dimension: number;
  readonly parameters: SchedulingParameters;
  readonly anomalies: Anomalies;
  /** Anomalous points of each pod, as things stand. */
  readonly counts: number[];
  /** Candidates of each pod that was high-load at the start. */
  readonly candidates = new Map<number, number[]>();
  /** Partitions that have been changed: each is at most once in a run. */
  readonly changed = new Set<number>();
  readonly proposals: Proposal[] = [];
  /** Load of each pod over all points. */
  readonly totals: number[];

  constructor(model: ClusterModel, parameters: SchedulingParameters) {
    this.cluster = new WorkingCluster(model);
    this.dimension = mostUsedDimension(this.cluster);
    this.parameters = parameters;
    this.anomalies = new Anomalies(this.cluster, this.dimension, parameters);
    const pods = Array.from({ length: this.cluster.podCount }, (_, pod) => pod);
    this.counts = pods.map((pod) => this.anomalies.count(pod));
    this.totals = pods.map((pod) => this.#totalOf(pod));
    for (const pod of pods.filter((one) => this.isHighLoad(one))) {
      const found = candidatesOf(this.cluster, this.dimension, pod, this.anomalies, parameters);
      this.candidates.set(pod, found);
    }
  }

  isHighLoad(pod: number): boolean {
    return this.counts[pod]! > this.parameters.warning;
  }

  /** Those with most anomalous points first. */
  highLoadPods(): number[] {
    return [...this.candidates.keys()]
      .filter((pod) => this.isHighLoad(pod))
      .sort((a, b) => this.counts[b]! - this.counts[a]! || a - b);
  }

  /** The series of a replica as it is now, to add to a pod. */
  loadOf(replica: number, sign: 1 | -1 = 1): Change {
    const from = this.cluster.seriesOf(replica, this.dimension);
    return { from, factor: sign * this.cluster.scaleOf(replica) };
  }

  propose(proposal: Omit<Proposal, 'figures'>, pods: readonly number[]): void {
    const before = pods.map((pod) => [this.counts[pod]!, this.#meanUse(pod)] as const);
    this.cluster.apply(proposal.change);
    for (const pod of pods) {
      this.counts[pod] = this.anomalies.count(pod);
      this.totals[pod] = this.#totalOf(pod);
    }
    const figures = pods.flatMap((pod, i) => {
      const [anomalous, used] = before[i]!;
      const name = this.nameOf(pod);
      return [
        { name: `anomalous minutes of ${name}`, before: anomalous, after: this.counts[pod]! },
        { name: `mean use of ${name}, %`, before: used, after: this.#meanUse(pod) },
      ];
    });
    this.proposals.push({ ...proposal, figures });
  }

  nameOf(pod: number): string {
    return this.cluster.model.pods.ids[pod]!;
  }

  partitionName(partition: number): string {
    return this.cluster.model.partitions.ids[partition]!;
  }

  #meanUse(pod: number): number {
    return (100 * this.totals[pod]!) / this.cluster.points / this.anomalies.limitOf(pod);
  }

  #totalOf(pod: number): number {
    const from = this.cluster.podSeries(pod, this.dimension);
    let total = 0;
    for (let t = 0; t < this.cluster.points; t++) total += this.cluster.podLoad[from + t]!;
    return total;
  }
}

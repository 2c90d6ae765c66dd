// From a trace to a model.

import { ClusterBuilder } from '../cluster-builder.ts';
import type { ClusterModel } from '../cluster-model.ts';
import type { SeriesUse, Trace } from './trace.ts';

/** Throws a RangeError for a name that is not there, or twice, and for a partition that no pod holds or leads. */
export function modelOf(trace: Trace): ClusterModel {
  const { dimensions, points, pointSeconds, startAt } = trace.header;
  const builder = new ClusterBuilder(
    { dimensions, points, pointSeconds, startAt: Date.parse(startAt) / 1000 },
    trace.series.length,
  );
  const nodes = new Numbers('node');
  const disks = new Numbers('disk');
  const pods = new Numbers('pod');
  const tables = new Numbers('table');
  const series = new Numbers('series');
  for (const node of trace.nodes) nodes.add(node.id, builder.node(node));
  for (const { id, node, capacityBytes } of trace.disks) {
    disks.add(id, builder.disk(id, nodes.of(node), capacityBytes));
  }
  for (const { disk, ...pod } of trace.pods) {
    const at = disk === undefined ? {} : { disk: disks.of(disk) };
    pods.add(pod.id, builder.pod({ ...pod, ...at, node: nodes.of(pod.node) }));
  }
  for (const { id, tenant, quota } of trace.tables)
    tables.add(id, builder.table(id, tenant, quota));
  const row = new Float32Array(dimensions.length * points);
  for (const { id, values } of trace.series) {
    dimensions.forEach((name, dimension) => row.set(values[name]!, dimension * points));
    series.add(id, builder.row(row));
  }
  const use = ({ series: name, scale = 1 }: SeriesUse) => ({ row: series.of(name), scale });
  for (const { leader, follower, replicas = [], ...partition } of trace.partitions) {
    const loads = {
      leader: use(leader),
      ...(follower === undefined ? {} : { follower: use(follower) }),
    };
    const number = builder.partition({ ...partition, ...loads, table: tables.of(partition.table) });
    const leading = replicas.filter(({ leads }) => leads === true).length;
    if (leading !== 1) {
      throw new RangeError(`partition ${partition.id} has ${leading} replicas that lead it`);
    }
    for (const { pod, leads = false, healthy } of replicas) {
      builder.replica(number, pods.of(pod), leads, healthy);
    }
  }
  return builder.build();
}

class Numbers {
  readonly #kind: string;
  readonly #numbers = new Map<string, number>();

  constructor(kind: string) {
    this.#kind = kind;
  }

  add(id: string, number: number): void {
    if (this.#numbers.has(id)) throw new RangeError(`there are two ${this.#kind}s ${id}`);
    this.#numbers.set(id, number);
  }

  of(id: string): number {
    const number = this.#numbers.get(id);
    if (number === undefined) throw new RangeError(`there is no ${this.#kind} ${id}`);
    return number;
  }
}

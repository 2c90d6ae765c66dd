// The cluster of a history of time series: their databases, and what replicas hold at the end.

import { inspect } from 'node:util';
import type { GroupDefinition } from '../../contracts/cluster.ts';
import { engineText } from '../../engines/tsm/testing/engine-text.ts';
import { SimulatedCluster, type StateAt } from '../histories/cluster.ts';
import type { SeriesLife, SeriesNode } from './node.ts';

const fields = ['v', 'f0', 'f1', 'f2', 'f3'];

export class SeriesCluster extends SimulatedCluster<SeriesLife, SeriesNode> {
  override groups(): GroupDefinition[] {
    return super.groups().filter(({ model }) => model === 'tsm');
  }

  /** What has yet to come to rest, if anything. */
  unsettled(): string | undefined {
    const unsettled = this.unsettledOf(this.groups());
    if (unsettled !== undefined) return unsettled;
    const databases = this.groups().map(({ group }) => {
      const { life } = this.leaderOf(group)!;
      const pod = life!.series.named().find((one) => one.group === group)!.pod;
      const sorted = [...pod.databases()].sort((a, b) => (a.name < b.name ? -1 : 1));
      return inspect(sorted, { depth: null });
    });
    const isEven = databases.every((names) => names === databases[0]);
    return isEven ? undefined : `databases of partitions: ${databases.join('\n')}`;
  }

  /** Throws where replicas differ, or a series is in two partitions. */
  async checkReplicas(): Promise<void> {
    const places = new Map<string, number>();
    for (const definition of this.groups()) {
      const { group } = definition;
      const [first, ...others] = await this.statesOf(definition, textOf);
      for (const one of others) {
        if (one !== first) throw new Error(`group ${group}:\n${first}\n\nanother replica:\n${one}`);
      }
      // A line of a series is its key alone, below its database and policy.
      let place = '';
      for (const line of first!.split('\n')) {
        if (/^(database|policy) /.test(line)) place = line.startsWith('d') ? line : place;
        if (!/^(r|e\d*),s=\d+$/.test(line)) continue;
        const name = `${place} ${line}`;
        const known = places.get(name);
        if (known !== undefined && known !== group) {
          throw new Error(`${name} is in groups ${known} and ${group}`);
        }
        places.set(name, group);
      }
    }
  }
}

async function textOf({ series }: SeriesLife, group: number): Promise<StateAt<string>> {
  const { pod } = series.named().find((one) => one.group === group)!;
  return { index: pod.appliedIndex, state: engineText(pod.parts.engine, fields) };
}

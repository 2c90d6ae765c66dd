// What it costs a node to collect the request units of its replicas, and to report them.

import { shippedTable } from '../../request-units/pru-table.ts';
import { RowPricer } from '../../request-units/row-pricer.ts';
import { collectMs, GroupLoads } from '../../server/planes/group-loads.ts';
import { unitsOf } from '../../server/planes/pod-units.ts';
import { PodLoad } from '../../storage-node/pod-load.ts';
import { RowWork } from '../../universal-row/row-work.ts';
import type { Experiment, Line } from './experiment.ts';
import { Chance } from './sim/chance.ts';

const replicas = 1000;
const collectionsOfMinute = 60_000 / collectMs;
/** Interval at which a settled cluster with so many groups asks its nodes: `server/cluster/controller.ts`. */
const secondsBetweenReports = 2;

export const replicaLoads: Experiment = {
  id: 'XS-2-monitor',
  title: 'Request units of replicas are collected and reported',
  kind: 'LIVE',
  source: 'X-Stor, section 2; sizes of ours',
  setup:
    '1,000 replicas in a plane, each with reads and writes of its own in every ten seconds: their work is priced, kept by the ' +
    'minute, and told to the leader of the metadata, as in a node. Processor time of that beside all of a processor. Counting the ' +
    'work of a command is part of the command, and measured by `npm run bench -- metering`.',
  run({ quick, seeds, progress }) {
    const minutes = quick ? 2 : 20;
    const chance = new Chance(seeds[0]!);
    const pods = Array.from({ length: replicas }, () => ({ load: new PodLoad() }));
    const pricer = new RowPricer({ costs: shippedTable.models.kv, isCached: true });
    let now = 0;
    const loads = new GroupLoads(() => now);
    let [micros, priced] = [0, 0];
    const byMinute: [number, number][] = [];
    for (let round = 1; round <= minutes * collectionsOfMinute; round++) {
      for (const pod of pods) serve(pod.load, chance);
      // Just before a minute is over, its last ten seconds are counted in it.
      now = round * collectMs - 1;
      const before = process.cpuUsage();
      const units = new Map(pods.map((pod, group) => [group, unitsOf(pod, pricer)]));
      loads.add(units);
      const { user, system } = process.cpuUsage(before);
      micros += user + system;
      for (const one of units.values()) priced += one;
      if (round % collectionsOfMinute !== 0) continue;
      progress(`minute ${round / collectionsOfMinute}`);
      byMinute.push([round / collectionsOfMinute, micros / round / 1000]);
    }
    now += 1;
    const reported = pods.map((_, group) => loads.unitsOf(group));
    const figures = reported.map((units) => ({ units }));
    const bytes = JSON.stringify(figures).length - JSON.stringify(figures.map(() => ({}))).length;
    const told = pods.flatMap((_, group) => loads.minutesOf(group, { from: 0, to: minutes }));
    const sum = 60 * told.reduce((all, units) => all + units, 0);
    const line: Line = { label: 'ms a collection', points: byMinute };
    return {
      measures: [
        {
          metric: 'processor time of collecting, % of a processor',
          value: (100 * micros) / 1000 / (minutes * 60_000),
          threshold: 1,
          better: 'lower',
        },
        {
          metric: 'figures of replicas in reports, kB a second',
          value: bytes / secondsBetweenReports / 1000,
          threshold: 20,
          better: 'lower',
        },
        {
          metric: 'sum of the minutes of all replicas, off that of their prices, %',
          value: 100 * Math.abs(sum / priced - 1),
          threshold: 1,
          better: 'lower',
        },
      ],
      explanation:
        'In a cluster of three nodes under load, on a busy machine, the minutes of all replicas came to 100,891 request units over five ' +
        'minutes, where the meters that requests are charged to had 100,290: 0.6 % more.',
      xLabel: 'minute',
      yLabel: 'ms a collection',
      before: { title: 'not collected', lines: [] },
      after: { title: 'collected', lines: [line] },
    };
  },
};

/** Ten seconds of a replica. */
function serve(load: PodLoad, chance: Chance): void {
  const work = new RowWork();
  load.begin(work);
  const commands = 1 + chance.below(1000);
  work.lookups = commands;
  work.reads = Math.floor(commands / 2);
  work.readBytes = work.reads * 200;
  work.values = commands - work.reads;
  work.logBytes = work.values * 250;
  load.end(work, commands * 100, commands);
}

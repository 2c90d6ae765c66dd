// npm run simulate -- [--seeds N] [--from SEED] [--defects]: histories of the replicated log under faults. Prints a
// line of JSON for each that fails and one for all. With --defects, in how many seeds each planted bug is found; with
// --defect TEXT those with this in their names.
// Exit code 1 when a history fails, or a bug is not found.

import { parseArgs } from 'node:util';
import { defects } from './defects.ts';
import { runHistory } from './history.ts';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1000' },
    from: { type: 'string', default: '1' },
    defects: { type: 'boolean', default: false },
    defect: { type: 'string' },
  },
});
const seeds = Number(values.seeds);
const from = Number(values.from);
const print = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`);

async function search(): Promise<void> {
  const total = { histories: 0, failures: 0, events: 0, committed: 0, lost: 0, unknown: 0 };
  const more = { reads: 0, staleReads: 0, crashes: 0, memberChanges: 0, relaxed: 0, losses: 0 };
  for (let seed = from; seed < from + seeds; seed++) {
    const result = await runHistory(seed);
    total.histories++;
    if (result.failure !== undefined) {
      total.failures++;
      process.exitCode = 1;
      print(result);
    }
    total.events += result.events;
    total.committed += result.committed;
    total.lost += result.lost;
    total.unknown += result.unknown;
    more.reads += result.reads;
    more.staleReads += result.staleReads;
    more.crashes += result.crashes;
    more.memberChanges += result.memberChanges;
    more.relaxed += Number(result.isRelaxed);
    more.losses += result.losses;
  }
  print({ ...total, ...more, from });
}

async function findDefects(name: string): Promise<void> {
  for (const defect of defects.filter((one) => one.name.includes(name))) {
    let seed = from;
    let failure: string | undefined;
    for (; seed < from + seeds && failure === undefined; seed++) {
      failure = (await runHistory(seed, defect)).failure;
    }
    if (failure === undefined) process.exitCode = 1;
    print({ defect: defect.name, found: failure !== undefined, histories: seed - from, failure });
  }
}

const name = values.defects ? '' : values.defect;
await (name === undefined ? search() : findDefects(name));

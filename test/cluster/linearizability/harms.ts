// Faults of a cluster's nodes while clients work: one fault after the other, drawn at random, each
// with its end.

import { setTimeout as pause } from 'node:timers/promises';
import type { LocalNodes } from '../../../bench/cluster/local-nodes.ts';
import type { Random } from '../../support/random.ts';
import { nanoseconds } from './workload.ts';

type Harm = (of: LocalNodes, random: Random, ms: number) => Promise<void>;

const others = (of: LocalNodes, node: number): number[] =>
  of.numbers.filter((other) => other !== node);

const anyNode = (of: LocalNodes, random: Random): number => random.pick(of.numbers);

/** These end at once, and start again later. */
async function end(of: LocalNodes, nodes: readonly number[], ms: number): Promise<void> {
  await Promise.all(nodes.map((node) => of.kill(node)));
  await pause(ms);
  await Promise.all(nodes.map((node) => of.restart(node)));
}

const harms: Record<string, Harm> = {
  'kill one': (of, random, ms) => end(of, [anyNode(of, random)], ms),
  'kill a majority': (of, random, ms) => end(of, others(of, anyNode(of, random)), ms / 4),
  'kill all': (of, _random, ms) => end(of, of.numbers, ms / 4),
  'stop one': async (of, random, ms) => {
    const node = anyNode(of, random);
    of.signal(node, 'SIGSTOP');
    await pause(ms);
    of.signal(node, 'SIGCONT');
  },
  'cut one off': async (of, random, ms) => {
    of.cutOff(anyNode(of, random));
    await pause(ms);
  },
  'nobody hears one': async (of, random, ms) => {
    const node = anyNode(of, random);
    for (const other of others(of, node)) of.proxies.hold(node, other);
    await pause(ms);
  },
  'one hears nobody': async (of, random, ms) => {
    const node = anyNode(of, random);
    for (const other of others(of, node)) of.proxies.hold(other, node);
    await pause(ms);
  },
  'cut one link': async (of, random, ms) => {
    const node = anyNode(of, random);
    const other = random.pick(others(of, node));
    of.proxies.hold(node, other);
    if (random.chance(0.5)) of.proxies.hold(other, node);
    await pause(ms);
  },
  'break connections': async (of, random) => {
    const node = anyNode(of, random);
    for (const other of others(of, node)) of.proxies.reset(node, other);
    await pause(random.below(300));
  },
  'a slow link': async (of, random, ms) => {
    const node = anyNode(of, random);
    for (const other of others(of, node)) of.proxies.delay(node, other, 20 + random.below(400));
    await pause(ms);
  },
};

/** A harm that was done. Times in nanoseconds, as those of operations. */
export interface HarmDone {
  readonly harm: string;
  readonly from: number;
  readonly to: number;
}

/** Until `isOver`; resolves to the harms that were done. All nodes run then, and hear each other. */
export async function harm(
  of: LocalNodes,
  random: Random,
  longestMs: number,
  isOver: () => boolean,
): Promise<HarmDone[]> {
  const done: HarmDone[] = [];
  while (!isOver()) {
    await pause(300 + random.below(1500));
    const kind = random.pick(Object.keys(harms));
    const from = nanoseconds();
    try {
      await harms[kind]!(of, random, 500 + random.below(longestMs - 500));
    } finally {
      of.proxies.heal();
    }
    done.push({ harm: kind, from, to: nanoseconds() });
  }
  return done;
}

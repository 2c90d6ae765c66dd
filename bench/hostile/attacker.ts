// A thread that carries out the attacks of one case. It has less of the processor than the server and the pinging
// clients: on a network the attacker has processors of its own, and here it must not have theirs.

import { setPriority } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import type { Attack, Target } from './attack.ts';
import { attacksOf } from './cases.ts';

export interface AttackerData {
  /** The name of a case. */
  name: string;
  target: Target;
}

/** In this order, each once. `prepare` and `verdict` are answered when they are done. */
export type AttackerRequest =
  | { kind: 'prepare' }
  | { kind: 'run'; seconds: number }
  | { kind: 'verdict' };

export interface Outcome {
  rounds: number;
  failure: string | undefined;
}

export interface AttackerAnswers {
  prepare: { failure: string | undefined };
  /** Of each attack; undefined for one that takes too long. */
  run: (Outcome | undefined)[];
  /** What is wrong. */
  verdict: string[];
}

/** An attack that has not ended by then continues unattended, and is reported as unfinished. */
const longestAttackMs = 45_000;
/** Nice value. On Linux `setPriority` takes a thread id; 0 is the calling thread. */
const niceness = 10;

const { name, target } = workerData as AttackerData;
const attacks = attacksOf(name);

if (process.platform === 'linux') setPriority(0, niceness);

async function prepare(): Promise<AttackerAnswers['prepare']> {
  try {
    await Promise.all(attacks.map(async (attack) => await attack.prepare?.(target)));
    return { failure: undefined };
  } catch (error) {
    return { failure: (error as Error).message };
  }
}

async function run(seconds: number): Promise<AttackerAnswers['run']> {
  const over = new AbortController();
  const deadline = sleep(longestAttackMs, undefined, { signal: over.signal }).catch(() => {});
  const outcomes = await Promise.all(
    attacks.map((attack) =>
      Promise.race([repeat(attack, seconds), deadline.then(() => undefined)]),
    ),
  );
  over.abort();
  return outcomes;
}

/** At least once; a server that refuses connections, or is gone, ends it. */
async function repeat(attack: Attack, seconds: number): Promise<Outcome> {
  const until = performance.now() + seconds * 1000;
  let rounds = 0;
  try {
    do {
      await attack.run(target);
      rounds++;
    } while (performance.now() < until);
    return { rounds, failure: undefined };
  } catch (error) {
    // After a successful round, a refusal is an effect of the attack.
    const failure = rounds > 0 ? undefined : `${attack.name}: ${(error as Error).message}`;
    return { rounds, failure };
  }
}

async function verdict(): Promise<string[]> {
  const found: string[] = [];
  for (const attack of attacks) {
    try {
      const problem = await attack.verdict?.(target);
      if (problem !== undefined) found.push(problem);
    } catch (error) {
      found.push((error as Error).message);
    }
  }
  return found;
}

parentPort!.on('message', (request: AttackerRequest) => {
  const work =
    request.kind === 'prepare'
      ? prepare()
      : request.kind === 'run'
        ? run(request.seconds)
        : verdict();
  void work.then((answer) => parentPort!.postMessage(answer));
});

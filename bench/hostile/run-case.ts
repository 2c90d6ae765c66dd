// One case: the other clients' waiting time without and with the attack, the growth of memory, and
// the outcome.

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { residentBytes } from '../support/process-usage.ts';
import { type Attack, usualGrowthBytes } from './attack.ts';
import { type AttackedServer, type ServerOptions, startAttacked } from './attacked-server.ts';
import type { PingerData, Pings } from './pinger.ts';
import { longestSteps, type ServerStep } from './server-steps.ts';

interface CaseOptions extends ServerOptions {
  /** Duration of the quiet run, and of the repetition of attacks. */
  seconds: number;
}

export interface CaseResult {
  name: string;
  what: string;
  /** Longest gaps of both planes, in ms. */
  quietMs: number;
  attackedMs: number;
  /** The most by which the gap exceeds the quiet run's, on both planes. */
  beyondMs: number;
  growthBytes: number;
  growthLimit: number;
  /** The server ended. */
  died: boolean;
  rounds: number;
  /** The longest steps of the server during the attack, the longest first. */
  steps: ServerStep[];
  /** Attacks that were still being carried out when they were no longer waited for. */
  unfinished: string[];
  verdict: string | undefined;
  /** The attack could not be carried out, and so shows nothing. */
  failure: string | undefined;
}

/** The other clients may be kept waiting for so long beyond the quiet run. */
export const gapLimitMs = 50;

const sampleEveryMs = 20;
/** An attack that has not ended by then goes on unattended, and is said to. */
const longestAttackMs = 45_000;
/** Time after an attack, for its effects to show. */
const afterMs = 500;
const planes = ['redis', 'influx'] as const;
const stepsShown = 5;

/** Whether the server kept its guarantees. */
export function isKept(result: CaseResult): boolean {
  const { beyondMs, growthBytes, growthLimit, died, verdict, failure } = result;
  if (died || verdict !== undefined || failure !== undefined) return false;
  return beyondMs <= gapLimitMs && growthBytes <= growthLimit;
}

export async function runCase(
  attacks: readonly Attack[],
  { name, what }: Pick<Attack, 'name' | 'what'>,
  options: CaseOptions,
): Promise<CaseResult> {
  const flags = attacks.flatMap((attack) => attack.flags ?? []);
  const modes = attacks.flatMap(({ directoryMode }) => directoryMode ?? []);
  const server = await startAttacked(
    { flags, ...(modes.length === 0 ? {} : { directoryMode: modes[0]! }) },
    options,
  );
  const password = attacks.find((attack) => attack.password !== undefined)?.password;
  const pingers = planes.map((plane) => new Pinger(server, plane, password));
  try {
    await Promise.all(attacks.map(async (attack) => await attack.prepare?.(server)));
    await sleep(200);
    await Promise.all(pingers.map((pinger) => pinger.take()));
    await sleep(options.seconds * 1000);
    const quiet = await Promise.all(pingers.map((pinger) => pinger.take()));
    const resident = new ResidentWatch(server);
    const beganAt = Date.now();
    const outcomes = await outcomesOf(attacks, server, options.seconds);
    await sleep(afterMs);
    const attacked = await Promise.all(pingers.map((pinger) => pinger.take()));
    const growthBytes = resident.end();
    const lost = attacked.some((pings) => pings.lost > 0);
    const died = !server.isUp();
    const steps = died ? [] : await longestSteps(server, beganAt, stepsShown);
    const verdicts: string[] = lost && !died ? ['another client was cut off'] : [];
    for (const attack of died ? [] : attacks) {
      const verdict = await verdictOf(attack, server);
      if (verdict !== undefined) verdicts.push(verdict);
    }
    return {
      name,
      what,
      quietMs: Math.max(...quiet.map(({ longestMs }) => longestMs)),
      attackedMs: Math.max(...attacked.map(({ longestMs }) => longestMs)),
      beyondMs: Math.max(...attacked.map((one, n) => one.longestMs - quiet[n]!.longestMs)),
      growthBytes,
      growthLimit: Math.max(...attacks.map((attack) => attack.growthBytes ?? usualGrowthBytes)),
      died: died || !server.isUp(),
      rounds: outcomes.reduce((sum, outcome) => sum + (outcome?.rounds ?? 0), 0),
      steps,
      unfinished: attacks.filter((_, n) => outcomes[n] === undefined).map(({ name: one }) => one),
      verdict: verdicts.length === 0 ? undefined : verdicts.join('; '),
      failure: died
        ? undefined
        : outcomes.find((outcome) => outcome?.failure !== undefined)?.failure,
    };
  } finally {
    await Promise.all(pingers.map((pinger) => pinger.end()));
    await server.stop();
  }
}

async function verdictOf(attack: Attack, server: AttackedServer): Promise<string | undefined> {
  try {
    return await attack.verdict?.(server);
  } catch (error) {
    return (error as Error).message;
  }
}

interface Outcome {
  rounds: number;
  failure: string | undefined;
}

/** Outcome of each attack; undefined for one that takes too long. */
async function outcomesOf(
  attacks: readonly Attack[],
  server: AttackedServer,
  seconds: number,
): Promise<(Outcome | undefined)[]> {
  const over = new AbortController();
  const deadline = sleep(longestAttackMs, undefined, { signal: over.signal }).catch(() => {});
  const outcomes = await Promise.all(
    attacks.map((attack) =>
      Promise.race([repeat(attack, server, seconds), deadline.then(() => undefined)]),
    ),
  );
  over.abort();
  return outcomes;
}

/** At least once; a server that refuses connections, or is gone, ends it. */
async function repeat(attack: Attack, server: AttackedServer, seconds: number): Promise<Outcome> {
  const until = performance.now() + seconds * 1000;
  let rounds = 0;
  try {
    do {
      await attack.run(server);
      rounds++;
    } while (performance.now() < until && server.isUp());
    return { rounds, failure: undefined };
  } catch (error) {
    // After a successful round, a refusal is an effect of the attack.
    const failure = rounds > 0 ? undefined : `${attack.name}: ${(error as Error).message}`;
    return { rounds, failure };
  }
}

class Pinger {
  readonly #worker: Worker;

  constructor(server: AttackedServer, plane: 'redis' | 'influx', password: string | undefined) {
    const port = plane === 'redis' ? server.redisPort : server.influxPort;
    const workerData: PingerData = { plane, port, password };
    this.#worker = new Worker(join(import.meta.dirname, 'pinger.js'), { workerData });
  }

  /** The figures since it was last asked. */
  take(): Promise<Pings> {
    return new Promise((resolve) => {
      this.#worker.once('message', resolve);
      this.#worker.postMessage('take');
    });
  }

  async end(): Promise<void> {
    await this.#worker.terminate();
  }
}

/** How far resident memory grows from here on. */
class ResidentWatch {
  readonly #server: AttackedServer;
  readonly #before: number;
  #most: number;
  readonly #timer: NodeJS.Timeout;

  constructor(server: AttackedServer) {
    this.#server = server;
    this.#before = residentBytes(server.pid);
    this.#most = this.#before;
    this.#timer = setInterval(() => this.#look(), sampleEveryMs);
  }

  end(): number {
    clearInterval(this.#timer);
    this.#look();
    return this.#most - this.#before;
  }

  #look(): void {
    if (this.#server.isUp()) this.#most = Math.max(this.#most, residentBytes(this.#server.pid));
  }
}

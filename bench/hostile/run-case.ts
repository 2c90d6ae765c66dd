// One case: the other clients' waiting time without and with the attack, the growth of memory, and
// the outcome.

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { residentBytes } from '../support/process-usage.ts';
import { usualGrowthBytes } from './attack.ts';
import { type AttackedServer, type ServerOptions, startAttacked } from './attacked-server.ts';
import type { AttackerAnswers, AttackerData, AttackerRequest } from './attacker.ts';
import { attacksOf, type HostileCase } from './cases.ts';
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
  { name, what }: HostileCase,
  options: CaseOptions,
): Promise<CaseResult> {
  const attacks = attacksOf(name);
  const flags = attacks.flatMap((attack) => attack.flags ?? []);
  const modes = attacks.flatMap(({ directoryMode }) => directoryMode ?? []);
  const server = await startAttacked(
    { flags, ...(modes.length === 0 ? {} : { directoryMode: modes[0]! }) },
    options,
  );
  const password = attacks.find((attack) => attack.password !== undefined)?.password;
  const pingers = planes.map((plane) => new Pinger(server, plane, password));
  const attacker = new Attacker(name, server);
  try {
    const prepared = await attacker.ask('prepare');
    if (prepared.failure !== undefined) throw new Error(`${name}: ${prepared.failure}`);
    await sleep(200);
    await Promise.all(pingers.map((pinger) => pinger.take()));
    await sleep(options.seconds * 1000);
    const quiet = await Promise.all(pingers.map((pinger) => pinger.take()));
    const resident = new ResidentWatch(server);
    const beganAt = Date.now();
    const outcomes = await attacker.ask('run', options.seconds);
    await sleep(afterMs);
    const attacked = await Promise.all(pingers.map((pinger) => pinger.take()));
    const growthBytes = resident.end();
    const lost = attacked.some((pings) => pings.lost > 0);
    const died = !server.isUp();
    const steps = died ? [] : await longestSteps(server, beganAt, stepsShown);
    const verdicts: string[] = lost && !died ? ['another client was cut off'] : [];
    if (!died) verdicts.push(...(await attacker.ask('verdict')));
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
    await Promise.all([attacker, ...pingers].map((thread) => thread.end()));
    await server.stop();
  }
}

class Attacker {
  readonly #worker: Worker;

  constructor(name: string, server: AttackedServer) {
    const { redisPort, influxPort, admin, adminToken, directory } = server;
    const target = { redisPort, influxPort, admin, adminToken, directory };
    const workerData: AttackerData = { name, target };
    this.#worker = new Worker(join(import.meta.dirname, 'attacker.js'), { workerData });
  }

  ask<K extends AttackerRequest['kind']>(kind: K, seconds = 0): Promise<AttackerAnswers[K]> {
    return new Promise((resolve, reject) => {
      const worker = this.#worker;
      worker.once('error', reject);
      worker.once('message', (answer: AttackerAnswers[K]) => {
        worker.off('error', reject);
        resolve(answer);
      });
      worker.postMessage({ kind, seconds });
    });
  }

  async end(): Promise<void> {
    await this.#worker.terminate();
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

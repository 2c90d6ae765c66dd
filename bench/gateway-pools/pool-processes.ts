// Gateways of one pool, and the scheduler of their shares, each in its own process. This process carries their messages,
// as a network would. Work of each second runs ten times as often, and leases are 2 s.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { FromGateway, ToGateway } from './pool-messages.ts';

/** Of this module as it is compiled, or else beside its source. */
const root = resolve(import.meta.dirname, '../..');
const built = root.endsWith('dist') ? root : join(root, 'dist');
const dist = process.env['DIST_DIR'] ?? built;

export const secondMs = 100;
export const leaseMs = 2000;

/** A gateway process's state of a tenant. */
interface GateState {
  share: number;
  used: number;
  refused: number;
}

/** Milliseconds: the processes' second, and the length of a lease. */
interface PoolTimes {
  secondMs: number;
  leaseMs: number;
}

/** Requests come in pieces, as many times a second. */
const pieces = 10;

const gatewayProgram = (times: PoolTimes): string => `
  import { GatewayAdmission } from '${dist}/access/admission/gateway-admission.js';
  import { PoolAgent } from '${dist}/bench/gateway-pools/pool-agent.js';
  import { ChargeClass, Meter } from '${dist}/request-units/meter.js';
  import { systemClock } from '${dist}/universal-row/environment.js';
  import { noLimits } from '${dist}/contracts/tenancy/definitions.js';

  const name = process.argv[1];
  const meter = new Meter({ plane: 'redis', run: name });
  const admission = new GatewayAdmission({ clock: systemClock, accountOf: (n) => meter.account(n) });
  const agent = new PoolAgent({
    gateway: name, admission, clock: systemClock, firstPart: 0, leaseMs: ${times.leaseMs},
    send: (message) => process.send({ to: 'scheduler', message }),
  });
  // Units that are asked for in each of these short seconds, by tenant.
  let load = {};
  const used = {};
  const handlers = {
    message: (message) => agent.hear(message),
    quota: ({ tenant, perSecond }) => {
      const limits = { ...noLimits, ruPerSecond: perSecond };
      agent.follow({ name: 't' + tenant, number: tenant, state: 'active', firstTable: 16, databases: 16, limits });
    },
    load: (wanted) => { load = wanted; },
    wallClock: (ms) => { const now = Date.now; Date.now = () => now() + ms; },
    goodbye: () => { agent.goodbye(); process.disconnect(); process.exit(); },
    state: () => {
      const state = {};
      for (const limiter of admission.limiters()) {
        state[limiter.tenant] = { share: limiter.quota.perSecond, used: used[limiter.tenant] ?? 0, refused: limiter.counters.refused };
      }
      process.send({ to: 'test', state });
    },
  };
  process.on('message', ([what, value]) => handlers[what](value));
  process.on('disconnect', () => process.exit());
  setInterval(() => {
    for (const [tenant, units] of Object.entries(load)) {
      const limiter = admission.limiterOf(Number(tenant));
      for (let i = 0; limiter !== undefined && i < units / ${pieces}; i++) {
        const now = systemClock.monotonic();
        if (limiter.admit(now, 0)) {
          meter.account(limiter.tenant).charge(ChargeClass.write, 0, false, 1, 0, 0, 0, 0);
          limiter.settle(now);
          used[tenant] = (used[tenant] ?? 0) + 1;
        } else limiter.refuse(now);
      }
    }
  }, ${times.secondMs / pieces});
  setInterval(() => {
    admission.endSecond();
    agent.second();
  }, ${times.secondMs});
`;

const schedulerProgram = (times: PoolTimes): string => `
  import { PoolScheduler } from '${dist}/bench/gateway-pools/pool-scheduler.js';
  import { systemClock } from '${dist}/universal-row/environment.js';

  const scheduler = new PoolScheduler({
    clock: systemClock, leaseMs: ${times.leaseMs}, staleMs: ${3 * times.secondMs}, learnMs: Number(process.argv[1]),
    send: (gateway, message) => process.send({ to: gateway, message }),
  });
  const handlers = {
    message: (message) => scheduler.hear(message),
    quota: ({ tenant, perSecond }) => scheduler.setQuotas([[tenant, perSecond]]),
    wallClock: (ms) => { const now = Date.now; Date.now = () => now() + ms; },
  };
  process.on('message', ([what, value]) => handlers[what](value));
  process.on('disconnect', () => process.exit());
  setInterval(() => scheduler.second(), ${times.secondMs});
`;

type Said =
  | { to: 'scheduler'; message: FromGateway }
  | { to: 'test'; state: Record<string, GateState> };

export class PoolProcesses {
  readonly quotas = new Map<number, number>();
  readonly #gateways = new Map<string, ChildProcess>();
  #scheduler: ChildProcess | undefined;
  #started = 0;

  readonly #times: PoolTimes;

  constructor(times: PoolTimes = { secondMs, leaseMs }) {
    this.#times = times;
    if (!existsSync(dist)) throw new Error(`${dist} is missing: run \`npm run build\` first`);
  }

  /** Returns its name. */
  startGateway(): string {
    const name = `gateway-${++this.#started}`;
    const child = start(gatewayProgram(this.#times), name);
    this.#gateways.set(name, child);
    child.on('message', (said: Said) => {
      if (said.to === 'scheduler') tell(this.#scheduler, 'message', said.message);
    });
    for (const [tenant, perSecond] of this.quotas) tell(child, 'quota', { tenant, perSecond });
    return name;
  }

  /** The first one of a pool has nothing to learn. */
  startScheduler(isFirst: boolean): void {
    const learnMs = isFirst ? 0 : this.#times.leaseMs;
    const child = start(schedulerProgram(this.#times), String(learnMs));
    this.#scheduler = child;
    child.on('message', ({ to, message }: { to: string; message: ToGateway }) => {
      tell(this.#gateways.get(to), 'message', message);
    });
    for (const [tenant, perSecond] of this.quotas) tell(child, 'quota', { tenant, perSecond });
  }

  async killScheduler(): Promise<void> {
    await kill(this.#scheduler!);
    this.#scheduler = undefined;
  }

  async killGateway(name: string): Promise<void> {
    const child = this.#gateways.get(name)!;
    this.#gateways.delete(name);
    await kill(child);
  }

  async endGateway(name: string): Promise<void> {
    const child = this.#gateways.get(name)!;
    const ended = once(child, 'exit');
    tell(child, 'goodbye', undefined);
    await ended;
    this.#gateways.delete(name);
  }

  setQuota(tenant: number, perSecond: number): void {
    this.quotas.set(tenant, perSecond);
    for (const child of [...this.#gateways.values(), this.#scheduler]) {
      tell(child, 'quota', { tenant, perSecond });
    }
  }

  /** Units that are asked of a gateway in each short second. */
  load(name: string, tenant: number, units: number): void {
    tell(this.#gateways.get(name), 'load', { [tenant]: units });
  }

  /** Their clocks of the day go forward, or back. */
  jump(ms: number): void {
    for (const child of [...this.#gateways.values(), this.#scheduler]) tell(child, 'wallClock', ms);
  }

  async states(tenant: number): Promise<Map<string, GateState>> {
    const states = new Map<string, GateState>();
    for (const [name, child] of this.#gateways) {
      const answer = new Promise<GateState>((resolve) => {
        const hear = (said: Said): void => {
          if (said.to !== 'test') return;
          child.off('message', hear);
          resolve(said.state[tenant] ?? { share: 0, used: 0, refused: 0 });
        };
        child.on('message', hear);
      });
      tell(child, 'state', undefined);
      states.set(name, await answer);
    }
    return states;
  }

  /** Units a second that gateways go by, rounded. */
  async shares(tenant: number): Promise<number[]> {
    return [...(await this.states(tenant)).values()].map(({ share }) => Math.round(share));
  }

  async remove(): Promise<void> {
    const children = [...this.#gateways.values(), this.#scheduler];
    await Promise.all(
      children.map(async (child) => {
        if (child !== undefined) await kill(child);
      }),
    );
  }
}

function start(program: string, ...words: string[]): ChildProcess {
  return spawn(process.execPath, ['--input-type=module', '-e', program, ...words], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
}

function tell(child: ChildProcess | undefined, what: string, value: unknown): void {
  // A process that has just died receives nothing.
  if (child?.connected) child.send([what, value], () => {});
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

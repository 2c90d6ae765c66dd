import type { AdmissionRules } from '../../access/admission/admission-rules.ts';
import { GatewayAdmission } from '../../access/admission/gateway-admission.ts';
import { noLimits } from '../../contracts/tenancy/definitions.ts';
import { ChargeClass, Meter } from '../../request-units/meter.ts';
import { mean } from '../support/statistics.ts';
import type { Experiment, Line } from './experiment.ts';
import { Chance } from './sim/chance.ts';

const capacity = 10_000;
const quotas = { A: 1000, B: 4500, C: 4500 } as const;
type Client = keyof typeof quotas;
const clients = Object.keys(quotas) as Client[];
const seconds = 60;
const risesAt = 20;
const claimsAt = 40;

/** Requests a second: A rises from 500 to 3,000, and later the others claim all of theirs. */
function load(client: Client, second: number): number {
  if (client === 'A') return second < risesAt ? 500 : 3000;
  return second < claimsAt ? 2250 : 4500;
}

interface Run {
  served: Record<Client, Float64Array>;
  refused: Record<Client, Float64Array>;
  /** A's throughput after the others claimed theirs, by tenth of a second. */
  afterClaim: Float64Array;
}

/** The gateway's stage with the three clients as tenants. `admit` is for a request of one unit. */
function gatewayOf(allocation: AdmissionRules['allocation']) {
  const meter = new Meter({ plane: 'redis', run: 'allocation' });
  const time = { ms: 0 };
  const clock = { now: () => time.ms, monotonic: () => time.ms };
  const rules = { allocation, gatewayRu: capacity };
  const gateway = new GatewayAdmission({ clock, rules, accountOf: (n) => meter.account(n) });
  for (const [at, name] of clients.entries()) {
    const limits = { ...noLimits, ruPerSecond: quotas[name] };
    const number = at + 1;
    gateway.follow({
      name,
      number,
      state: 'active',
      firstTable: 16 * number,
      databases: 16,
      limits,
    });
  }
  const admit = (client: Client): boolean => {
    const number = clients.indexOf(client) + 1;
    const limiter = gateway.limiterOf(number)!;
    if (!limiter.admit(time.ms, 0)) {
      limiter.refuse(time.ms);
      return false;
    }
    meter.account(number).charge(ChargeClass.read, 0, false, 1, 0, 0, 0, 0);
    limiter.settle(time.ms);
    return true;
  };
  return { time, gateway, admit };
}

function run(allocation: AdmissionRules['allocation'], seed: number): Run {
  const chance = new Chance(seed);
  const { time, gateway, admit } = gatewayOf(allocation);
  const zero = (): Record<Client, Float64Array> => ({
    A: new Float64Array(seconds),
    B: new Float64Array(seconds),
    C: new Float64Array(seconds),
  });
  const result: Run = { served: zero(), refused: zero(), afterClaim: new Float64Array(200) };
  const due = { A: 0, B: 0, C: 0 };
  for (let now = 0; now < seconds * 1000; now++) {
    const second = Math.floor(now / 1000);
    time.ms = now;
    if (now % 1000 === 999) gateway.endSecond();
    // The order within a millisecond is random.
    const order = clients.toSorted(() => chance.next() - 0.5);
    for (const client of order) {
      due[client] += load(client, second) / 1000;
      for (; due[client] >= 1; due[client]--) {
        const ok = admit(client);
        (ok ? result.served : result.refused)[client][second]!++;
        if (ok && client === 'A' && second >= claimsAt) {
          result.afterClaim[Math.floor(now / 100) - claimsAt * 10]!++;
        }
      }
    }
  }
  return result;
}

export const allocationExperiment: Experiment = {
  id: 'AWS-stacked',
  title: 'Hard and stacked allocation',
  kind: 'SIM',
  source: 'Amazon, Fairness in multi-tenant systems, "Quotas" (AWS-hard, AWS-stacked)',
  setup:
    'A server of 10,000 requests a second of which half is used. Client A with a quota of 1,000 rises from 500 to ' +
    '3,000; later the others claim all of their quotas.',
  run({ seeds }) {
    const hard = seeds.map((seed) => run('hard', seed));
    const stacked = seeds.map((seed) => run('stacked', seed));
    const mid = (runs: readonly Run[], what: 'served' | 'refused', client: Client): number =>
      mean(runs.map((one) => mean([...one[what][client].subarray(risesAt + 2, claimsAt)])));
    const refusedOthers = stacked.map(({ refused }) =>
      sum([...refused.B.subarray(claimsAt), ...refused.C.subarray(claimsAt)]),
    );
    const backWithin = stacked.map(({ afterClaim }) => secondsUntil(afterClaim, quotas.A / 10));
    return {
      measures: [
        {
          metric: 'hard: A served, off 1,000/s',
          value: Math.abs(mid(hard, 'served', 'A') - 1000),
          threshold: 1,
          better: 'lower',
          paper: '1,000',
        },
        {
          metric: 'hard: A refused, off 2,000/s',
          value: Math.abs(mid(hard, 'refused', 'A') - 2000),
          threshold: 1,
          better: 'lower',
          paper: '2,000',
        },
        {
          metric: 'stacked: A refused /s',
          value: mid(stacked, 'refused', 'A'),
          threshold: 0,
          better: 'lower',
          without: mid(hard, 'refused', 'A'),
          paper: 'all served',
        },
        {
          metric: 'stacked: A back at its quota after the others claimed theirs, s',
          value: Math.max(...backWithin),
          threshold: 1,
          better: 'lower',
        },
        {
          metric: 'stacked: requests of the others refused',
          value: mean(refusedOthers),
          threshold: 0,
          better: 'lower',
        },
      ],
      xLabel: 'second',
      yLabel: 'served/s',
      before: { title: 'hard', lines: lines(hard[0]!) },
      after: { title: 'stacked', lines: lines(stacked[0]!) },
    };
  },
};

/** Seconds until no second after it has more than the quota, in tenths. */
function secondsUntil(tenths: Float64Array, mostPerTenth: number): number {
  for (let from = 0; from + 10 <= tenths.length; from++) {
    let isOver = false;
    for (let at = from; at + 10 <= tenths.length && !isOver; at++) {
      isOver = sum([...tenths.subarray(at, at + 10)]) > mostPerTenth * 10 * 1.01;
    }
    if (!isOver) return from / 10;
  }
  return Infinity;
}

function lines({ served }: Run): Line[] {
  return clients.map((client) => ({
    label: `client ${client}`,
    points: Array.from(served[client], (value, second): [number, number] => [second, value]),
  }));
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

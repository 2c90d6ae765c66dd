// Cost of rate limits at a gateway with many limited tenants: a request at its limiter, and the
// work of each second.

import { GatewayAdmission } from '../access/admission/gateway-admission.ts';
import { ChargeClass, Meter } from '../request-units/meter.ts';
import { systemClock } from '../universal-row/environment.ts';
import { noLimits } from '../contracts/tenancy/definitions.ts';
import { machine, printTable, type Report, type Row, save } from './support/report.ts';
import { seededRandom } from './support/random.ts';
import { median } from './support/statistics.ts';

interface AdmissionOptions {
  rounds: number;
  tenants: number[];
  requests: number;
}

export const admissionBenchDefaults: AdmissionOptions = {
  rounds: 9,
  tenants: [1, 100, 10_000],
  requests: 1_000_000,
};

const requestMicros = 1;
/** Target for the work of a second: one per cent of a core. */
const secondMicros = 10_000;

interface Gateway {
  meter: Meter;
  admission: GatewayAdmission;
  /** Work of each second. */
  second: () => void;
}

function gatewayOf(tenants: number): Gateway {
  const meter = new Meter({ plane: 'redis', run: 'bench' });
  const admission = new GatewayAdmission({
    clock: systemClock,
    accountOf: (tenant) => meter.account(tenant),
  });
  for (let number = 1; number <= tenants; number++) {
    // A limit above the demand below.
    const limits = { ...noLimits, ruPerSecond: 1e9 };
    const name = `t${number}`;
    admission.follow({ name, number, state: 'active', firstTable: 16, databases: 16, limits });
  }
  const second = (): void => admission.endSecond();
  second();
  return { meter, admission, second };
}

export function admissionBench(options: AdmissionOptions, command: string): Report {
  const rows = options.tenants.flatMap((tenants) => measure(tenants, options));
  const report: Report = {
    bench: 'admission',
    command,
    date: new Date().toISOString().slice(0, 10),
    machine: machine(),
    peer: 'at most',
    rounds: options.rounds,
    settings: { requests: options.requests },
    rows,
  };
  printTable(report);
  save(report, 'admission');
  return report;
}

/** Processor time of this process: others may run beside it. */
function cpuMicros(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

function measure(tenants: number, { rounds, requests }: AdmissionOptions): Row[] {
  const { meter, admission, second } = gatewayOf(tenants);
  const random = seededRandom(7);
  const order = Uint32Array.from({ length: requests }, () => 1 + Math.floor(random() * tenants));
  const limiters = new Map(
    Array.from(admission.limiters(), (limiter) => [limiter.tenant, limiter]),
  );
  /** Microseconds of a request, with its limiter or without. */
  const run = (limited: boolean): number => {
    let now = systemClock.monotonic();
    const begin = cpuMicros();
    for (const tenant of order) {
      now += 0.001;
      const limiter = limiters.get(tenant)!;
      if (limited && !limiter.admit(now, 1500)) throw new Error('the quota is too small');
      meter.account(tenant).charge(ChargeClass.write, 0, false, 1.2, 1, 1, 1, 1);
      if (limited) limiter.settle(now);
    }
    return (cpuMicros() - begin) / requests;
  };
  const costs: number[] = [];
  const seconds: number[] = [];
  for (let round = -1; round < rounds; round++) {
    const [without, limited] = [run(false), run(true)];
    const begin = cpuMicros();
    second();
    if (round < 0) continue;
    costs.push(limited - without);
    seconds.push(cpuMicros() - begin);
    meter.tick();
  }
  const row = (name: string, ours: number, peer: number): Row => ({
    name,
    unit: 'us',
    ours,
    peer,
    ratio: ours / peer,
    better: 'lower',
    target: 1,
  });
  const of = tenants === 1 ? '1 tenant' : `${tenants} tenants`;
  return [
    row(`a request, ${of}`, median(costs), requestMicros),
    row(`each second, ${of}, all of them active`, median(seconds), secondMicros),
  ];
}

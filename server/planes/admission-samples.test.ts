import { expect, test } from 'vitest';
import { GatewayAdmission } from '../../access/admission/gateway-admission.ts';
import { noLimits, type TenantDefinition } from '../../contracts/tenancy/definitions.ts';
import { admissionSamples } from './admission-samples.ts';

function tenant(number: number, ruPerSecond: number): TenantDefinition {
  const limits = { ...noLimits, ruPerSecond };
  return { name: `t${number}`, number, state: 'active', firstTable: 16, databases: 16, limits };
}

test('tenants beyond those with a label of their own are added up under one', () => {
  const clock = { now: () => 0, monotonic: () => 0 };
  const admission = new GatewayAdmission({ clock, accountOf: () => undefined });
  for (const [number, quota] of [100, 20, 3, 0].entries())
    admission.follow(tenant(number + 1, quota));
  for (const limiter of admission.limiters()) limiter.counters.waitedMs = 1500;
  for (const limiter of admission.limiters()) limiter.use.end(limiter.tenant);
  const samples = admissionSamples('redis', admission, (number) =>
    number === 1 ? 't1' : '_other',
  );
  const values = (name: string): Record<string, number> =>
    Object.fromEntries(
      samples
        .filter((sample) => sample.name === name)
        .map(({ labels, value }) => [labels!['tenant']!, value]),
    );
  expect(values('polyrow_tenant_quota_ru')).toEqual({ t1: 100, _other: 23 });
  expect(values('polyrow_tenant_waited_seconds_total')).toEqual({ t1: 1.5, _other: 3 });
  expect(values('polyrow_tenant_quota_used_ratio')).toEqual({ t1: 0.01, _other: 1 });
  expect(new Set(samples.map(({ labels }) => labels!['plane']))).toEqual(new Set(['redis']));
});

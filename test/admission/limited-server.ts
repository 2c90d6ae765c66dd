// A Redis plane in the process of the test, with one tenant whose request units are limited, and what is needed to
// put it into its limit's debt.

import type { AdmissionRules } from '../../access/admission/admission-rules.ts';
import type { TenantLimiter } from '../../access/admission/tenant-limiter.ts';
import { ChargeClass, type TenantAccount } from '../../request-units/meter.ts';
import type { PartitionAdmission } from '../../contracts/partition-admission.ts';
import { noLimits, type TenantDefinition } from '../../contracts/tenancy/definitions.ts';
import { TenantsServer } from '../redis-tenants/tenants-server.ts';
import type { RespClient } from '../support/resp-client.ts';

export class LimitedServer {
  readonly tenants: TenantsServer;
  readonly red: TenantDefinition;

  private constructor(tenants: TenantsServer, red: TenantDefinition) {
    this.tenants = tenants;
    this.red = red;
  }

  /** With a tenant `red` that has this quota, and a tenant `blue` that has none. */
  static async start(
    ruPerSecond: number,
    rules: Partial<AdmissionRules>,
    partitions?: PartitionAdmission,
  ): Promise<LimitedServer> {
    const tenants = await TenantsServer.start({
      limits: rules,
      ...(partitions === undefined ? {} : { partitions }),
    });
    const red = tenants.tenant('red', { limits: { ...noLimits, ruPerSecond } });
    tenants.tenant('blue');
    return new LimitedServer(tenants, red);
  }

  get limiter(): TenantLimiter {
    return this.tenants.admission.limiterOf(this.red.number)!;
  }

  get account(): TenantAccount {
    return this.tenants.meter.plane.meter.account(this.red.number);
  }

  quota(ruPerSecond: number): void {
    this.tenants.alter('red', { limits: { ...noLimits, ruPerSecond } });
  }

  /** Red has spent so many seconds of its quota that it has not got yet. */
  owe(seconds: number): void {
    const { limiter } = this;
    const now = performance.now();
    const lru = limiter.balance(now) + limiter.quota.perSecond * seconds;
    this.account.charge(ChargeClass.background, 0, false, lru, lru, 0, 0, 0);
    limiter.settle(now);
  }

  client(name = 'red', version: 2 | 3 = 2): Promise<RespClient> {
    return this.tenants.client(name, name, version);
  }

  stop(): Promise<void> {
    return this.tenants.stop();
  }
}

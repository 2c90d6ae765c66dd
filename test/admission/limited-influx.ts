// The InfluxDB listener in this process, with limits on request units and a meter behind it.

import type { AdmissionRules } from '../../access/admission/admission-rules.ts';
import { GatewayAdmission } from '../../access/admission/gateway-admission.ts';
import type { TenantLimiter } from '../../access/admission/tenant-limiter.ts';
import { InfluxMetering } from '../../access/influx/http/metering.ts';
import { Meter } from '../../request-units/meter.ts';
import { shippedTable } from '../../request-units/pru-table.ts';
import { SeriesPricer } from '../../request-units/series-pricer.ts';
import { systemClock } from '../../universal-row/environment.ts';
import type { TenantLimits } from '../../contracts/tenancy/definitions.ts';
import type { InfluxServerOptions } from '../../access/influx/http/server.ts';
import { TenantServer } from '../influx-tenants/tenant-server.ts';

export interface LimitedInflux {
  server: TenantServer;
  admission: GatewayAdmission;
  meter: Meter;
  /** Limiter of a tenant with a limit. */
  limiter(tenant: string): TenantLimiter;
  setLimits(tenant: string, limits: Partial<TenantLimits>): void;
  /** Makes it owe so much. */
  indebt(tenant: string, units: number): void;
  close(): Promise<void>;
}

export async function limitedInflux(
  rules: Partial<AdmissionRules> = {},
  options: Partial<InfluxServerOptions> = {},
): Promise<LimitedInflux> {
  const meter = new Meter({ plane: 'influx', run: 'test' });
  const admission = new GatewayAdmission({
    clock: systemClock,
    rules: { debtSeconds: 3600, ...rules },
    accountOf: (tenant) => meter.account(tenant),
    classLimit: 'queryRuPerSecond',
  });
  const metering = new InfluxMetering({
    meter,
    pricer: new SeriesPricer(shippedTable.models.series),
  });
  const server = await TenantServer.start({ metering, admission, ...options });
  server.control.onUpdate = (update) => admission.update(update);
  const seconds = setInterval(() => admission.endSecond(), 1000);
  const numberOf = (tenant: string): number => server.principals.tenant(tenant)!.number;
  const limiter = (tenant: string): TenantLimiter => admission.limiterOf(numberOf(tenant))!;
  return {
    server,
    admission,
    meter,
    limiter,
    setLimits: (name, limits) => {
      const tenant = server.principals.tenant(name)!;
      server.control.setTenant(name, { limits: { ...tenant.limits, ...limits } });
    },
    indebt: (tenant, units) => {
      const account = meter.account(numberOf(tenant));
      account.charge(
        1,
        0,
        false,
        limiter(tenant).balance(systemClock.monotonic()) + units,
        1,
        1,
        1,
        1,
      );
      limiter(tenant).settle(systemClock.monotonic());
    },
    close: async () => {
      clearInterval(seconds);
      await server.close();
      admission.close();
    },
  };
}

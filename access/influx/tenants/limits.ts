// Error text for a tenant that has reached a limit.

import type { TenantLimits } from '../../../contracts/tenancy/definitions.ts';

export function limitText(tenant: string, limit: keyof TenantLimits, value: number): string {
  return `limit exceeded: tenant=${tenant} limit=${limit} value=${value}`;
}

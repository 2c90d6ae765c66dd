// How a tenant is told that it has all it may have.

import type { TenantLimits } from '../../../contracts/tenancy/definitions.ts';

export function limitText(tenant: string, limit: keyof TenantLimits, value: number): string {
  return `limit exceeded: tenant=${tenant} limit=${limit} value=${value}`;
}

// Lists that the admin API answers in parts.

import type { TenantDefinition } from '../../contracts/tenancy/definitions.ts';
import type { AdminClient } from './admin-client.ts';

/** As many as a server answers at a time. */
const mostOfPage = 1000;

/** Everything there is, part by part. `keyOf` says where the next part begins. */
export async function allOf<T>(
  client: AdminClient,
  page: string,
  member: string,
  keyOf: (last: T) => string | number,
): Promise<T[]> {
  const all: T[] = [];
  for (;;) {
    const last = all.at(-1);
    const query = last === undefined ? {} : { after: keyOf(last) };
    const { [member]: some = [] } = await client.get<Record<string, T[]>>(page, query);
    all.push(...some);
    if (some.length < mostOfPage) return all;
  }
}

export function allTenants(client: AdminClient): Promise<TenantDefinition[]> {
  return allOf<TenantDefinition>(client, '/v1/tenants', 'tenants', ({ number }) => number);
}

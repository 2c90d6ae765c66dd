// Paths of the admin API.

export function tenantPage(tenant: string): string {
  return `/v1/tenants/${encodeURIComponent(tenant)}`;
}

export function userPage({ tenant, user }: { tenant: string; user: string }): string {
  return `${tenantPage(tenant)}/users/${encodeURIComponent(user)}`;
}

export function tokensPage(tenant: string): string {
  return `${tenantPage(tenant)}/tokens`;
}

export const adminTokensPage = '/v1/tokens';

export function limitsPage(tenant: string): string {
  return `${tenantPage(tenant)}/limits`;
}

/** Tables of all tenants together, or of one. */
export function tablesPage(tenant: string | undefined): string {
  return tenant === undefined ? '/v1/tables' : `${tenantPage(tenant)}/tables`;
}

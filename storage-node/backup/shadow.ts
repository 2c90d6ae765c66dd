// Shadow tables and databases, which no client can name: a restore loads rows and time series into
// them until all are loaded and checked. They are swapped with the real ones in one log entry, so
// that no client sees a partial restore; leftovers of an interrupted one are dropped at the next
// start.

/** Numbers beyond all tenants; as many as a tenant can have. */
export const shadowTables = { first: 0x7fff_f000, count: 0x1000 } as const;

export function isShadowTable(table: number): boolean {
  return table >= shadowTables.first && table < shadowTables.first + shadowTables.count;
}

/** In front of names that belong to us or to a tenant: no client can write one. */
const separator = '\u0001';
const shadowPrefix = `${separator}restore${separator}`;

export function shadowDatabase(name: string): string {
  return shadowPrefix + name;
}

export function isShadowDatabase(name: string): boolean {
  return name.startsWith(shadowPrefix);
}

/** The tenant `default` has its databases under their own names, others with their number in front. */
export function tenantDatabase(tenant: number, name: string): string {
  return tenant === 0 ? name : `${separator}${tenant}${separator}${name}`;
}

/** The tenant's number, and its clients' name of the database. */
export function ownerOf(database: string): { tenant: number; name: string } {
  if (!database.startsWith(separator)) return { tenant: 0, name: database };
  const end = database.indexOf(separator, 1);
  return { tenant: Number(database.slice(1, end)), name: database.slice(end + 1) };
}

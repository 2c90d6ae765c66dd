// Where a restore puts rows and time series until all of them are there and have been checked: tables and
// databases that no client can name. They change places with the real ones in one entry of the log, so that
// no client meets half of a restore; what an interrupted one left is dropped at the next start.

/** Numbers beyond those of any tenant; as many as a tenant can have. */
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

/** The tenant's number, and what its clients call the database. */
export function ownerOf(database: string): { tenant: number; name: string } {
  if (!database.startsWith(separator)) return { tenant: 0, name: database };
  const end = database.indexOf(separator, 1);
  return { tenant: Number(database.slice(1, end)), name: database.slice(end + 1) };
}

// Stored names of databases. A database of a tenant other than the first is named
//
//   \u0001 <number of the tenant> \u0001 <name its clients use>
//
// Clients cannot use such names: names must be printable.

const mark = '\u0001';

/** Prefix of the stored names of a tenant's databases. */
export function databasePrefix(tenant: number): string {
  return tenant === 0 ? '' : `${mark}${tenant}${mark}`;
}

/** Tenant of databases without a tenant, for example during a restore. */
const noTenant = -1;

/** Tenant of a database, and the name its clients use. */
export function ownerOf(kept: string): { tenant: number; name: string } {
  if (!kept.startsWith(mark)) return { tenant: 0, name: kept };
  const end = kept.indexOf(mark, 1);
  const number = kept.slice(1, end);
  if (!/^[1-9]\d*$/.test(number)) return { tenant: noTenant, name: kept };
  return { tenant: Number(number), name: kept.slice(end + 1) };
}

/** Whether a client may mean a database by it. */
export function isClientName(name: string): boolean {
  return !name.startsWith(mark);
}

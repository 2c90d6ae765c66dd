// How databases of several tenants are kept side by side: behind the seam that of a tenant other than the
// first is called
//
//   \u0001 <number of the tenant> \u0001 <name its clients use>
//
// No client can name one so: names must be printable.

const mark = '\u0001';

/** What comes before the names of a tenant's databases. */
export function databasePrefix(tenant: number): string {
  return tenant === 0 ? '' : `${mark}${tenant}${mark}`;
}

/** Of databases that are no tenant's, as those that are being restored. */
const nobody = -1;

/** Whose a database is, and what its clients call it. */
export function ownerOf(kept: string): { tenant: number; name: string } {
  if (!kept.startsWith(mark)) return { tenant: 0, name: kept };
  const end = kept.indexOf(mark, 1);
  const number = kept.slice(1, end);
  if (!/^[1-9]\d*$/.test(number)) return { tenant: nobody, name: kept };
  return { tenant: Number(number), name: kept.slice(end + 1) };
}

/** Whether a client may mean a database by it. */
export function isClientName(name: string): boolean {
  return !name.startsWith(mark);
}

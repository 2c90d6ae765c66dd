// The function libraries of a tenant are rows of a separate table, which clients cannot select. Libraries are
// therefore logged, replayed, backed up and dropped like all rows of the tenant.

/** Table `first + n` belongs to the tenant with number n. */
const libraryTables = { first: 0x7000_0000, count: 0x0fff_f000 } as const;

/** The table with the libraries of a tenant: under each library's name its code. */
export function libraryTable(tenant: number): number {
  return libraryTables.first + tenant;
}

export function isLibraryTable(table: number): boolean {
  return table >= libraryTables.first && table < libraryTables.first + libraryTables.count;
}

/** The number of the tenant whose libraries are in such a table. */
export function tenantOfLibraries(table: number): number {
  return table - libraryTables.first;
}

// Who asks, as far as statements and points are concerned.

/** Somebody known, as of now: what it may do can change while it is at it. */
export interface Principal {
  readonly name: string;
  /** May do everything. */
  readonly isAdmin: boolean;
  mayRead(database: string): boolean;
  mayWrite(database: string): boolean;
}

/** Whether it may learn that there is such a database. Nobody in particular may know everything. */
export function mayKnow(principal: Principal | undefined, database: string): boolean {
  return (
    principal === undefined ||
    principal.isAdmin ||
    principal.mayRead(database) ||
    principal.mayWrite(database)
  );
}

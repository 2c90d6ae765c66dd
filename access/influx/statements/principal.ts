// Identity of the caller, for statements and points.

/** An authenticated user. Its privileges can change while a request runs. */
export interface Principal {
  readonly name: string;
  /** May do everything. */
  readonly isAdmin: boolean;
  mayRead(database: string): boolean;
  mayWrite(database: string): boolean;
}

/** Whether it may learn that there is such a database. Without authentication every database is visible. */
export function mayKnow(principal: Principal | undefined, database: string): boolean {
  return (
    principal === undefined ||
    principal.isAdmin ||
    principal.mayRead(database) ||
    principal.mayWrite(database)
  );
}

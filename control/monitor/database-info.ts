// Databases of a tenant, as reported by the planes that store them.

export interface DatabaseInfo {
  /** Name of the database for its tenant: a number for Redis, a text for InfluxDB. */
  name: number | string;
  /** Rows of a Redis database; missing where counting them would take long. */
  rows?: number;
}

/** A database of a protocol in which they are made by name. */
export interface DatabaseName {
  /** The tenant's number. */
  tenant: number;
  name: string;
}

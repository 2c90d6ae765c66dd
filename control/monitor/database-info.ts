// A tenant's databases, as the planes that keep them tell.

export interface DatabaseInfo {
  /** Name as its tenant knows it: the number of a Redis database, the name of an InfluxDB one. */
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

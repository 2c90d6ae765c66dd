// A plane's report on the keys and series that requests touch most: approximate counts of a bounded number of names,
// so that it needs no scan.

/** Orders of the lists. */
export const topOrders = ['ru', 'rate', 'bytes'] as const;
export type TopOrder = (typeof topOrders)[number];

export const topKinds = ['key', 'series'] as const;
export type TopKind = (typeof topKinds)[number];

export interface TopQuery {
  /** Restricts the report to this tenant number. */
  tenant?: number;
  by: TopOrder;
  limit: number;
}

export interface TopEntry {
  kind: TopKind;
  /** The tenant's number. */
  tenant: number;
  /** Name of the database for its tenant: a number for Redis, a text for InfluxDB. */
  database: number | string;
  /** Bytes that are no text stand as \xNN; long names end in an ellipsis. */
  name: string;
  /** Request units a second, over the last half minute, as the next one. */
  ru: number;
  /** Requests a second; of a series, points. */
  rate: number;
  /** Bytes moved by the largest sampled request. */
  bytes: number;
}

/** The properties of a table that its pod enforces on every action, whatever the model. */
export interface TableRules {
  readOnly: boolean;
  /** Milliseconds; 0 for none. Given to rows that are written without an expiry of their own. */
  ttlDefaultMs: number;
  /** Infinity for none. */
  maxRowBytes: number;
}

export const noRules: TableRules = { readOnly: false, ttlDefaultMs: 0, maxRowBytes: Infinity };

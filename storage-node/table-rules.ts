/** The properties of a table that its pod enforces on every action, whatever the model. */
export interface TableRules {
  readOnly: boolean;
  /** Milliseconds; 0 for none. Given to rows that are written without an expiry of their own. */
  ttlDefaultMs: number;
  /** Infinity for none. */
  maxRowBytes: number;
  /** What it may hold together with others; absent when there is no limit. */
  quota?: TableQuota | undefined;
}

export interface TableQuota {
  /** Why a command that may need more room is refused just now, if it is. */
  refusal(): string | undefined;
}

/** Rules by table number, as they are now. A `Map` is one of these. */
export interface TableRulesByNumber {
  /** Undefined for a table that is kept elsewhere. */
  get(table: number): TableRules | undefined;
}

export const noRules: TableRules = { readOnly: false, ttlDefaultMs: 0, maxRowBytes: Infinity };

// The properties of a table as enforced by its pod on every action, for all models.

import {
  boundsOf,
  defaultTableProperties,
  type QuotaMode,
  type TableProperties,
  type WritePriority,
} from '../contracts/table-properties.ts';
import type { ReadBounds } from '../universal-row/command.ts';

export interface TableRules {
  readOnly: boolean;
  /**
   * Milliseconds; 0 for none. Applies to rows written without an expiry of their own; for series,
   * the duration of a retention policy that has none.
   */
  ttlDefaultMs: number;
  /** Size limit of a row, or of a point; Infinity for none. */
  maxRowBytes: number;
  /** Which writes go first where they have to wait. */
  writePriority: WritePriority;
  /** Whether requests may use unused capacity beyond the tenant's quota. */
  quotaMode: QuotaMode;
  /** Reads leave no entries in the caches above the disk. */
  cacheBypass: boolean;
  /** Of reads that a replica may answer that does not lead. */
  readBounds?: ReadBounds | undefined;
  /** Its rows were copied from other partitions: until its group says that it has all of them, it is read nowhere. */
  isCopy?: boolean | undefined;
  /** Rows are being copied to it: until it is served it changes with the copy alone, and counts for no quota. */
  isFilling?: boolean | undefined;
  /** Quota shared with other tables; absent when there is no limit. */
  quota?: TableQuota | undefined;
}

export interface TableQuota {
  /** Why a command is refused that needs `moreBytes` of room, or an unknown amount if that is 0; undefined if it is not. */
  refusal(moreBytes?: number): string | undefined;
  /** Bytes and rows to drop so that it is below its limits; 0 where it is. */
  excess(): { bytes: number; rows: number };
  /** Rows of so many bytes were dropped. */
  freed(bytes: number): void;
}

/** Rules by table number, as they are now. A `Map` is one of these. */
export interface TableRulesByNumber {
  /** Undefined for a table that is kept elsewhere. */
  get(table: number): TableRules | undefined;
}

/** Rules of the databases of time series, by the name they are kept under. A `Map` is one of these. */
export interface TableRulesByName {
  /** Undefined for one that has no properties of its own. */
  get(database: string): TableRules | undefined;
}

export const noRules: TableRules = rulesOf(defaultTableProperties);

/** A table's properties as rules of the pod. */
export function rulesOf(properties: TableProperties, quota?: TableQuota): TableRules {
  const { readOnly, ttlDefaultMs, maxRowBytes, writePriority, quotaMode, cacheBypass } = properties;
  return {
    readOnly,
    ttlDefaultMs,
    maxRowBytes: maxRowBytes === 0 ? Infinity : maxRowBytes,
    writePriority,
    quotaMode,
    cacheBypass,
    readBounds: boundsOf(properties.consistency),
    quota,
  };
}

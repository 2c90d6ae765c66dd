// Log of slow requests. Each plane keeps the latest ones.

export interface SlowlogQuery {
  /** Restricts the list to this tenant number. */
  tenant?: number;
  /** Limit of the answer; the newest entries are returned. */
  limit: number;
}

export interface SlowlogEntry {
  /** Ascending in its plane. */
  id: number;
  /** When it ended, Unix milliseconds. */
  at: number;
  durationMicros: number;
  /** The tenant's number. */
  tenant: number;
  user: string;
  address: string;
  /** The request, shortened; never a secret. */
  text: string;
  /** Its cost in request units. */
  ru: number;
}

/** A synchronous step that occupied a plane's thread for a long time. The plane served no other client meanwhile. */
export interface StepEntry {
  /** Ascending in its plane. */
  id: number;
  /** When it ended, Unix milliseconds. */
  at: number;
  durationMicros: number;
  /** Part of the time spent in garbage collection. */
  collectionMicros: number;
  /** Lower bound of the part spent without a processor. */
  preemptedMicros: number;
  cause: 'work' | 'collection' | 'preemption';
  /** The tenant's number. */
  tenant: number;
  /** The command or request; `after …` where only the preceding work is known. */
  text: string;
  /** Bytes that were sent for it. */
  bytes: number;
}

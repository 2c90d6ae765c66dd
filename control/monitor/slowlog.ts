// Slow requests, of which each plane keeps the latest.

export interface SlowlogQuery {
  /** Restricts the list to this tenant number. */
  tenant?: number;
  /** The newest so many. */
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

/** A synchronous step of work that kept a plane's thread for long: no other client was served meanwhile. */
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

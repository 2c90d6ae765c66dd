// Requests that took long, as a plane remembers the last of them.

export interface SlowlogQuery {
  /** Of this tenant only, by its number. */
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
  /** What it cost. */
  ru: number;
}

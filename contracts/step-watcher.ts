// Synchronous work that keeps a plane's thread, told to whoever looks for steps that take too long. While a step runs no
// other client of the plane is served.

/** The work that a step was a part of. */
export interface StepInfo {
  /** The command or request; never a secret, and not longer than a line. */
  what: string;
  /** The tenant's number; `backgroundWork` for what no client asked for. */
  tenant: number;
  /** Bytes that the client sent for it. */
  bytes: number;
}

/** What can say what it is. Asked of long steps only, so that others cost no string. */
export interface StepSource {
  stepInfo(): StepInfo;
}

export interface StepWatcher {
  /** Steps that take longer are told. Milliseconds. */
  readonly limitMs: number;
  /** A step has ended. Times are monotonic milliseconds. To be asked at once: what the source is about may change. */
  ended(startedAtMs: number, endedAtMs: number, source: StepSource): void;
  /** Work has begun for this source: a stall that no step explains is put down to the last one. */
  touched(source: StepSource): void;
}

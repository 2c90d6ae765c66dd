// Reports synchronous steps on a plane's thread to a watchdog for long ones. While a step runs the plane serves no other
// client.

/** The work that a step was a part of. */
export interface StepInfo {
  /** The command or request; never a secret, and not longer than a line. */
  what: string;
  /** Number of the tenant; `backgroundWork` for background work. */
  tenant: number;
  /** Bytes that the client sent for it. */
  bytes: number;
}

/** Describes a step. Called for long steps only, so that short ones build no string. */
export interface StepSource {
  stepInfo(): StepInfo;
}

export interface StepWatcher {
  /** Steps that take longer are reported. Milliseconds. */
  readonly limitMs: number;
  /** A step has ended. Times are monotonic milliseconds. The source must be asked at once, because it may be reused. */
  ended(startedAtMs: number, endedAtMs: number, source: StepSource): void;
  /** Work has begun for this source: a stall that no step explains is put down to the last one. */
  touched(source: StepSource): void;
}

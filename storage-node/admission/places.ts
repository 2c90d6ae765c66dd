// Where work runs, a piece in a place: slots of the processor, workers that read the disk.

/** Says of whose work the next piece may be. */
export interface TenantGate {
  mayTake(tenant: number, now: number): boolean;
}

export interface Places extends TenantGate {
  readonly count: number;
  readonly used: number;
  /** Whether there is a place for somebody's work; `mayTake` says for whose. */
  hasRoom(): boolean;
  /** A tenant asks for a place, whether it gets one or not. */
  asked(tenant: number, now: number): void;
  began(tenant: number, now: number): void;
  ended(tenant: number, now: number): void;
  /** Of a tenant that holds no place. */
  forget(tenant: number): void;
}

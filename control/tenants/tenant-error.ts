/** A change that is not possible, in words for people. Never tells a secret. */
export class TenantError extends Error {
  override readonly name = 'TenantError';
  readonly reason: TenantErrorReason;

  constructor(reason: TenantErrorReason, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** `unconfirmed`: it is stored, and comes into force as soon as all data planes can be reached again. */
type TenantErrorReason = 'missing' | 'conflict' | 'invalid' | 'unconfirmed';

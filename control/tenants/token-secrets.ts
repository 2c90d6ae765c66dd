// Tokens: secrets that we make ourselves. They are random and long, so a plain hash of one is enough to keep.

import { createHash, randomBytes } from 'node:crypto';

interface NewSecret {
  /** Shown once, at its creation. */
  secret: string;
  /** SHA-256 of it, in base64. */
  digest: string;
}

export function newSecret(): NewSecret {
  const secret = randomBytes(32).toString('base64url');
  return { secret, digest: digestOf(secret) };
}

export function digestOf(secret: string): string {
  return createHash('sha256').update(secret).digest('base64');
}

/** Public name of a token. */
export function newTokenId(): string {
  return randomBytes(8).toString('hex');
}

/** A random password. */
export function newPassword(): string {
  return randomBytes(18).toString('base64url');
}

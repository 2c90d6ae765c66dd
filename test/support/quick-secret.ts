// Passwords of tests: real ones take tens of milliseconds of a processor to store, and again to check.

import { scryptSync } from 'node:crypto';

/** A stored secret that takes no time to check. */
export function quickSecret(password: string): string {
  const salt = Buffer.from('salt');
  const hash = scryptSync(password, salt, 32, { N: 2, r: 1, p: 1 });
  return `scrypt$2$1$1$${salt.toString('base64')}$${hash.toString('base64')}`;
}

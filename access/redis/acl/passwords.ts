// Passwords in ACL rules: `>password`, `#digest` and their opposites, over secrets that cannot be read back.

import {
  checkDigest,
  checkPassword,
  hashDigest,
  hashPassword,
  sha256Hex,
} from '../../gateway/secrets.ts';
import type { PasswordKeeper } from './acl-user.ts';

/**
 * What stands for a stored secret where Redis shows the SHA-256 of a password. It names the secret, in `#` and
 * `!` too, and tells nothing of the password.
 */
export function shownDigest(stored: string): string {
  return sha256Hex(stored);
}

export const passwordKeeper: PasswordKeeper = {
  hash: (password) => hashPassword(Buffer.from(password)),
  hashDigest,
  async find(password, secrets) {
    const secret = Buffer.from(password);
    for (const stored of secrets) if (await checkPassword(secret, stored)) return stored;
    return undefined;
  },
  async findDigest(hex, secrets) {
    for (const stored of secrets) if (shownDigest(stored) === hex) return stored;
    for (const stored of secrets) if (await checkDigest(hex, stored)) return stored;
    return undefined;
  },
};

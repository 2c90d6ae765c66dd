// Passwords in ACL rules: `>password`, `#digest` and their opposites, over secrets that cannot be read back.

import {
  findSecret,
  findSecretByDigest,
  hashDigest,
  hashPassword,
  sha256Hex,
} from '../../gateway/secrets.ts';
import type { PasswordKeeper } from './acl-user.ts';

/**
 * Text shown for a stored secret where Redis shows the SHA-256 of a password. It identifies the
 * secret, in `#` and `!` too, and reveals nothing about the password.
 */
export function shownDigest(stored: string): string {
  return sha256Hex(stored);
}

/** Password keeper of a tenant's users: its hashes wait in the tenant's own queue. */
export function passwordKeeper(tenant: string): PasswordKeeper {
  const request = { kind: 'change', tenant, address: '' } as const;
  return {
    hash: (password, secrets) => hashPassword(Buffer.from(password), tenant, secrets),
    hashDigest: (hex, secrets) => hashDigest(hex, tenant, secrets),
    find: (password, secrets) => findSecret(Buffer.from(password), secrets, request),
    async findDigest(hex, secrets) {
      const shown = secrets.find((stored) => shownDigest(stored) === hex);
      return shown ?? (await findSecretByDigest(hex, secrets, request));
    },
  };
}

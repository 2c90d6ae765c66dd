// The operator's token of this data directory. It is made at the first start, shown once, and kept in a file that
// only the server's own user can read, where commands on the same machine find it. To replace it, remove the file and
// restart the server.

import { chmodSync, readFileSync } from 'node:fs';
import { newSecret } from '../../control/tenants/token-secrets.ts';
import type { DataDirectory } from './data-directory.ts';
import { ExitError } from './exit-error.ts';

export const adminTokenFile = 'admin-token';

export interface AdminToken {
  secret: string;
  /** The token was created just now, and must be shown. */
  isNew: boolean;
}

export function openAdminToken(data: DataDirectory): AdminToken {
  const path = data.file(adminTokenFile);
  const found = readIfThere(path);
  if (found === undefined) {
    const { secret } = newSecret();
    data.write(adminTokenFile, `${secret}\n`);
    return { secret, isNew: true };
  }
  const secret = found.trim();
  if (!/^[\x21-\x7e]{20,1024}$/.test(secret)) {
    throw new ExitError(
      `${path} should hold a token of 20 characters or more: remove it, and the next start makes one`,
    );
  }
  // A file that was created by hand may have another mode.
  chmodSync(path, 0o600);
  return { secret, isNew: false };
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

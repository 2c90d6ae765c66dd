// The secret that the nodes of a cluster share: 64 hexadecimal digits in a file. `polyrow cluster init` makes it.

import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { ExitError } from '../lifecycle/exit-error.ts';

const secretBytes = 32;

/** undefined where there is no such file. Throws `ExitError` for one that cannot be read or is something else. */
export function readClusterSecret(file: string): Buffer | undefined {
  let text: string;
  try {
    text = readFileSync(file, 'utf8').trim();
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    throw new ExitError(`cannot read the secret of the cluster: ${message} (cluster.secret-file)`);
  }
  if (!/^[0-9a-f]{64,}$/i.test(text) || text.length % 2 !== 0) {
    throw new ExitError(
      `${file} should hold the secret of the cluster: ${secretBytes * 2} hexadecimal digits or more`,
    );
  }
  return Buffer.from(text, 'hex');
}

/** Makes a new one. Throws when the file is there already. */
export function makeClusterSecret(file: string): Buffer {
  const secret = randomBytes(secretBytes);
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  writeFileSync(file, `${secret.toString('hex')}\n`, { mode: 0o600, flag: 'wx', flush: true });
  // The umask may have taken more than it should.
  chmodSync(file, 0o600);
  return secret;
}

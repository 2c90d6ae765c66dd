// Encryption of links without certificates: TLS 1.3 with a pre-shared key that both ends derive
// from the cluster's secret, and a separate key exchange for each link, so that a later leak of the
// secret does not reveal earlier traffic. The hello runs inside it.

import { hkdfSync } from 'node:crypto';
import type { ConnectionOptions, TlsOptions } from 'node:tls';

const keyBytes = 32;
const pskIdentity = 'polyrow';

const suite = {
  minVersion: 'TLSv1.3',
  maxVersion: 'TLSv1.3',
  // OpenSSL takes keys like ours with suites of SHA-256 only.
  ciphers: 'TLS_AES_128_GCM_SHA256',
} as const;

function keyOf(secret: Buffer): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', 'polyrow link encryption', keyBytes));
}

export function serverEncryption(secret: Buffer): TlsOptions {
  const key = keyOf(secret);
  return {
    ...suite,
    pskCallback: (_socket, identity) => (identity === pskIdentity ? key : null),
  };
}

export function clientEncryption(secret: Buffer): ConnectionOptions {
  const psk = keyOf(secret);
  return {
    ...suite,
    pskCallback: () => ({ psk, identity: pskIdentity }),
    // Knowledge of the key proves membership in the cluster: there is no certificate to check.
    checkServerIdentity: () => undefined,
  };
}

/** Whether the first bytes of a connection ask for TLS. A hello begins with its length, which is never these. */
export function asksForTls(bytes: Buffer): boolean {
  return bytes.length > 1 && bytes[0] === 0x16 && bytes[1] === 0x03;
}

export function isLoopback(address: string | undefined): boolean {
  if (address === undefined) return false;
  const plain = address.startsWith('::ffff:') ? address.slice(7) : address;
  return plain === '::1' || /^127\.\d+\.\d+\.\d+$/.test(plain);
}

/** In words, why TLS could not be agreed on. */
export function encryptionProblem({ message, code }: NodeJS.ErrnoException): string {
  // A key that is not the other end's: the words of the versions of OpenSSL.
  const isOtherKey =
    /binder does not verify|alert illegal parameter|alert decrypt error|BINDER|ALERT_ILLEGAL_PARAMETER|ALERT_DECRYPT_ERROR/;
  if (isOtherKey.test(`${code} ${message}`)) return 'the secret of the cluster is another one';
  return message.trim();
}

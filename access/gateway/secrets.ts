// Stored passwords, and their verification. A stored secret is one line:
//
//   scrypt-sha256$N$r$p$salt$hash    of the password's SHA-256 in hex
//   scrypt$N$r$p$salt$hash           of the password itself, as earlier releases wrote it
//
// salt and hash are base64. All passwords of a user have one salt: an attempt to log in takes one
// scrypt however many the user has, and as long as one for a user that does not exist. Redis shows
// the SHA-256 of a password and accepts it as one, so both forms lead to the same stored secret.
//
// scrypt takes tens of milliseconds and 16 MiB on purpose. It runs on libuv's threads: see `HashQueue`.

import { createHash, randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import { HashQueue, type HashRequest } from './hash-queue.ts';

/**
 * Cost parameters and salt of scrypt: secrets for which these are the same are checked by one
 * scrypt.
 */
interface Derivation {
  /** Whether the scrypt input is the password's SHA-256. */
  hashed: boolean;
  n: number;
  r: number;
  p: number;
  salt: string;
  /** Bytes of the hash. */
  length: number;
}

interface StoredSecret extends Derivation {
  hash: Buffer;
}

const usual = { hashed: true, n: 16_384, r: 8, p: 1, length: 32 } as const;

// Largest scrypt cost accepted in a stored secret, which may come from a backup of another server:
// four times the usual work, and 64 MiB.
const mostWork = 4 * usual.n * usual.r * usual.p;
const mostMemoryBytes = 128 * 1024 * 1024;

/**
 * One queue for this thread. The control plane and the two data planes have one each, so that at
 * most three of libuv's four threads hash passwords, and one is left for the disk.
 */
export const hashQueue = new HashQueue({ atOnce: 1, mostWaiting: { login: 256, change: 64 } });

function parse(stored: string): StoredSecret | undefined {
  const [kind, n, r, p, salt, hash, ...rest] = stored.split('$');
  if (hash === undefined || rest.length > 0) return undefined;
  if (kind !== 'scrypt' && kind !== 'scrypt-sha256') return undefined;
  const bytes = Buffer.from(hash, 'base64');
  const secret: StoredSecret = {
    hashed: kind === 'scrypt-sha256',
    n: Number(n),
    r: Number(r),
    p: Number(p),
    salt: salt!,
    length: bytes.length,
    hash: bytes,
  };
  return isSane(secret) ? secret : undefined;
}

function isSane({ n, r, p, length }: StoredSecret): boolean {
  const isCounted = Number.isInteger(r) && r >= 1 && Number.isInteger(p) && p >= 1;
  // As RFC 7914 has it: a power of two, and below 2^(128 r / 8).
  const isPower = n > 1 && Number.isInteger(Math.log2(n)) && Math.log2(n) < 16 * r;
  return isPower && isCounted && n * r * p <= mostWork && length >= 16 && length <= 128;
}

async function derive(
  input: Buffer,
  { n, r, p, salt, length }: Derivation,
  request: HashRequest,
): Promise<Buffer> {
  const options = { N: n, r, p, maxmem: mostMemoryBytes };
  return await hashQueue.run(
    request,
    () =>
      new Promise((resolve, reject) => {
        scrypt(input, Buffer.from(salt, 'base64'), length, options, (error, key) => {
          if (error === null) resolve(key);
          else reject(error);
        });
      }),
  );
}

/** The password's SHA-256 in hex, as Redis writes it. */
export function sha256Hex(password: Buffer | string): string {
  return createHash('sha256').update(password).digest('hex');
}

/** Stored form of a new password. Uses the salt of the user's other passwords, if there are any. */
export async function hashPassword(
  password: Buffer,
  tenant: string,
  others: readonly string[] = [],
): Promise<string> {
  return await hashDigest(sha256Hex(password), tenant, others);
}

/** Stored form of a password, computed from its SHA-256. */
export async function hashDigest(
  hex: string,
  tenant: string,
  others: readonly string[] = [],
): Promise<string> {
  const salt = saltOf(others) ?? randomBytes(16).toString('base64');
  const input = Buffer.from(hex.toLowerCase());
  const hash = await derive(input, { ...usual, salt }, { kind: 'change', tenant, address: '' });
  return ['scrypt-sha256', usual.n, usual.r, usual.p, salt, hash.toString('base64')].join('$');
}

function saltOf(secrets: readonly string[]): string | undefined {
  const isUsual = ({ hashed, n, r, p, length }: StoredSecret): boolean =>
    hashed && n === usual.n && r === usual.r && p === usual.p && length === usual.length;
  return secrets.map(parse).find((one) => one !== undefined && isUsual(one))?.salt;
}

/**
 * Finds the stored secret that matches the password. Takes one scrypt; more only for secrets of earlier releases, each of
 * which has a salt of its own. Takes as long for a user without secrets. Rejects with `TooManyHashes`.
 */
export async function findSecret(
  password: Buffer,
  secrets: readonly string[],
  request: HashRequest,
): Promise<string | undefined> {
  return await findDerived(secrets, request, ({ hashed }) =>
    hashed ? Buffer.from(sha256Hex(password)) : password,
  );
}

/** As `findSecret`, computed from the SHA-256 of the password. */
export async function findSecretByDigest(
  hex: string,
  secrets: readonly string[],
  request: HashRequest,
): Promise<string | undefined> {
  return await findDerived(secrets, request, ({ hashed }) =>
    hashed ? Buffer.from(hex.toLowerCase()) : undefined,
  );
}

const noSecret: Derivation = { ...usual, salt: randomBytes(16).toString('base64') };

/** Every group of secrets is looked at, whichever matches: the time does not tell which one it was. */
async function findDerived(
  secrets: readonly string[],
  request: HashRequest,
  inputOf: (derivation: Derivation) => Buffer | undefined,
): Promise<string | undefined> {
  const groups = new Map<string, { derivation: Derivation; secrets: [string, Buffer][] }>();
  for (const stored of secrets) {
    const secret = parse(stored);
    if (secret === undefined || inputOf(secret) === undefined) continue;
    const { hashed, n, r, p, salt, length } = secret;
    const key = [hashed, n, r, p, salt, length].join('$');
    const group = groups.get(key) ?? { derivation: secret, secrets: [] };
    group.secrets.push([stored, secret.hash]);
    groups.set(key, group);
  }
  if (groups.size === 0) await derive(inputOf(noSecret)!, noSecret, request);
  let found: string | undefined;
  for (const { derivation, secrets: some } of groups.values()) {
    const derived = await derive(inputOf(derivation)!, derivation, request);
    for (const [stored, hash] of some) if (timingSafeEqual(derived, hash)) found ??= stored;
  }
  return found;
}

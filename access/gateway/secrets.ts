// Passwords at rest, and how one is checked. A stored secret is one line:
//
//   scrypt$N$r$p$salt$hash           of the password itself
//   scrypt-sha256$N$r$p$salt$hash    of the password's SHA-256 in hex, where only that was ever told
//
// salt and hash are base64. scrypt takes tens of milliseconds and 16 MiB on purpose; it runs in libuv's
// pool, a few at a time, for the pool also has the disk to serve.

import { createHash, randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import { availableParallelism } from 'node:os';

const cost = 16_384;
const blockSize = 8;
const parallelization = 1;
const hashBytes = 32;

// What a stored secret may ask for at most: a damaged one must not eat the memory.
const maxCost = 2 ** 17;
const maxMemoryBytes = 256 * 1024 * 1024;

// Each plane has this many; whoever serves clients is to have a processor of its own.
const atOnce = availableParallelism() >= 4 ? 2 : 1;
const maxWaiting = 1024;

interface StoredSecret {
  hashed: boolean;
  n: number;
  r: number;
  p: number;
  salt: Buffer;
  hash: Buffer;
}

function parse(stored: string): StoredSecret | undefined {
  const [kind, n, r, p, salt, hash, ...rest] = stored.split('$');
  if (hash === undefined || rest.length > 0) return undefined;
  if (kind !== 'scrypt' && kind !== 'scrypt-sha256') return undefined;
  const secret = {
    hashed: kind === 'scrypt-sha256',
    n: Number(n),
    r: Number(r),
    p: Number(p),
    salt: Buffer.from(salt!, 'base64'),
    hash: Buffer.from(hash, 'base64'),
  };
  const sane =
    secret.n <= maxCost && secret.r >= 1 && secret.r <= 16 && secret.p >= 1 && secret.p <= 4;
  return sane && secret.hash.length >= 16 && secret.hash.length <= 128 ? secret : undefined;
}

/** Too many passwords are waiting to be checked for one more. */
export class TooManyChecks extends Error {
  override readonly name = 'TooManyChecks';
}

let running = 0;
const waiting: (() => void)[] = [];

async function derive(
  password: Buffer,
  salt: Buffer,
  length: number,
  costs: { n: number; r: number; p: number },
): Promise<Buffer> {
  if (running >= atOnce) {
    if (waiting.length >= maxWaiting) throw new TooManyChecks('too many logins at once');
    // Whoever ends hands its place on, so `running` stays as it is.
    await new Promise<void>((resolve) => waiting.push(resolve));
  } else running++;
  try {
    return await new Promise((resolve, reject) => {
      const options = { N: costs.n, r: costs.r, p: costs.p, maxmem: maxMemoryBytes };
      scrypt(password, salt, length, options, (error, key) => {
        if (error === null) resolve(key);
        else reject(error);
      });
    });
  } finally {
    const next = waiting.shift();
    if (next === undefined) running--;
    else next();
  }
}

/** The password's SHA-256 in hex, as Redis writes it. */
export function sha256Hex(password: Buffer | string): string {
  return createHash('sha256').update(password).digest('hex');
}

/** What to keep of a new password. */
export async function hashPassword(password: Buffer): Promise<string> {
  return await store('scrypt', password);
}

/** What to keep of a password that is known only by its SHA-256. */
export async function hashDigest(hex: string): Promise<string> {
  return await store('scrypt-sha256', Buffer.from(hex.toLowerCase()));
}

async function store(kind: string, of: Buffer): Promise<string> {
  const salt = randomBytes(16);
  const costs = { n: cost, r: blockSize, p: parallelization };
  const hash = await derive(of, salt, hashBytes, costs);
  const words = [kind, cost, blockSize, parallelization];
  return [...words, salt.toString('base64'), hash.toString('base64')].join('$');
}

/** Whether the password is that of the stored secret. Rejects with `TooManyChecks`. */
export async function checkPassword(password: Buffer, stored: string): Promise<boolean> {
  const secret = parse(stored);
  if (secret === undefined) return false;
  const { salt, hash, hashed } = secret;
  const input = hashed ? Buffer.from(sha256Hex(password)) : password;
  try {
    return timingSafeEqual(await derive(input, salt, hash.length, secret), hash);
  } catch (error) {
    // Parameters that scrypt itself refuses; nobody's password is that.
    if (error instanceof RangeError) return false;
    throw error;
  }
}

/** Whether the SHA-256 of the stored secret's password is `hex`; false where that cannot be told. */
export async function checkDigest(hex: string, stored: string): Promise<boolean> {
  const secret = parse(stored);
  if (secret === undefined || !secret.hashed) return false;
  const { salt, hash } = secret;
  return timingSafeEqual(
    await derive(Buffer.from(hex.toLowerCase()), salt, hash.length, secret),
    hash,
  );
}

const noSalt = randomBytes(16);

/** Takes the time of a check, so that nobody can tell by it whether there is such a user. */
export async function pretendToCheck(password: Buffer): Promise<void> {
  await derive(password, noSalt, hashBytes, { n: cost, r: blockSize, p: parallelization });
}

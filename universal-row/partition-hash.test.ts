import fc from 'fast-check';
import { expect, test } from 'vitest';
import { murmur128, partitionHash } from './partition-hash.ts';

test('is MurmurHash3 x86-128, by the verification value its reference tests use', () => {
  // Hashes of the keys [], [0], [0, 1] ... with seeds 256, 255 ..., themselves hashed with seed 0.
  const hashes = new Uint32Array(256 * 4);
  for (let i = 0; i < 256; i++) {
    const key = Uint8Array.from({ length: i }, (_, k) => k);
    hashes.set(murmur128(key, 256 - i), i * 4);
  }
  const [verification] = murmur128(new Uint8Array(hashes.buffer), 0);
  expect(verification).toBe(0xb3ece62a);
});

// Data lies where these say. If one of them changes, every partition's contents are lost.
test('never changes', () => {
  const check = (partition: Parameters<typeof partitionHash>[0], hash: bigint) =>
    expect(partitionHash(partition).toString(16), String(partition)).toBe(hash.toString(16));
  check([], 0x45f4af5ab1c69f54n);
  check([Buffer.from('user:1000')], 0x65a8e2799458995dn);
  check(['user:1000'], 0xf0affd87cc167672n);
  check([1], 0x323c952b79a8924en);
  check([1n], 0x32405e74e1cd87a6n);
  check([-0], 0x1e68bc60187f4253n);
  check([null, true, Buffer.of()], 0xddf7993c8fbf30ben);
  check(['cpu', 'host=a,region=eu'], 0x5263e34be20cde36n);
});

test('tells apart groups that differ only in type or in where a scalar ends', () => {
  const hashes = [['a', 'b'], ['ab'], ['ab', ''], [Buffer.from('ab')], [0], [-0], [0n], [false]];
  expect(new Set(hashes.map(partitionHash)).size).toBe(hashes.length);
});

test('is 64 bits unsigned, and flipping one bit of a key flips about half of them', () => {
  let flipped = 0;
  let cases = 0;
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 40 }), fc.nat(), (key, at) => {
      const hash = partitionHash([key]);
      expect(hash >= 0n && hash < 2n ** 64n).toBe(true);
      const other = Uint8Array.from(key);
      other[at % key.length]! ^= 1 << (at & 7);
      const difference = (hash ^ partitionHash([other])).toString(2);
      flipped += difference.replaceAll('0', '').length;
      cases++;
    }),
    { numRuns: 2000, seed: 1 },
  );
  expect(flipped / cases).toBeGreaterThan(31);
  expect(flipped / cases).toBeLessThan(33);
});

test('spreads consecutive keys evenly over partitions', () => {
  const partitions = 32;
  const keys = 32_000;
  const counts = Array.from({ length: partitions }, () => 0);
  for (let i = 0; i < keys; i++) {
    const partition = Number(
      (partitionHash([Buffer.from(`key:${i}`)]) * BigInt(partitions)) >> 64n,
    );
    counts[partition]!++;
  }
  // Five standard deviations of a fair draw.
  const mean = keys / partitions;
  for (const count of counts) expect(Math.abs(count - mean)).toBeLessThan(5 * Math.sqrt(mean));
});

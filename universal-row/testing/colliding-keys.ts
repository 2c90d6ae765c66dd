// Keys that all have the same FNV-1a hash of 32 bits, as a client would make them: blocks of which either of two
// leads from one state to the same next one, so each block doubles the keys (Joux, CRYPTO 2004).

const fnvPrime = 0x01000193;
const blockBytes = 8;

/** `2 ** blocks` keys of letters behind `prefix`. */
export function collidingKeys(prefix: string, blocks: number): Buffer[] {
  let state = run(0x811c9dc5, Buffer.from(prefix));
  const pairs: [Buffer, Buffer][] = [];
  for (let i = 0; i < blocks; i++) {
    const seen = new Map<number, Buffer>();
    for (let n = 0; ; n++) {
      const block = letters(n);
      const next = run(state, block);
      const other = seen.get(next);
      if (other === undefined) {
        seen.set(next, block);
        continue;
      }
      pairs.push([other, block]);
      state = next;
      break;
    }
  }
  return Array.from({ length: 2 ** blocks }, (_, choice) =>
    Buffer.concat([
      Buffer.from(prefix),
      ...pairs.map((pair, block) => pair[(choice >>> block) & 1]!),
    ]),
  );
}

function run(state: number, bytes: Buffer): number {
  let hash = state;
  for (const byte of bytes) hash = Math.imul(hash ^ byte, fnvPrime);
  return hash;
}

/** Another block for each `n`, with all letters drawn: blocks that differ in a few letters hardly collide. */
function letters(n: number): Buffer {
  const block = Buffer.alloc(blockBytes);
  const drawn = Math.imul(n, 0x9e3779b1);
  for (let i = 0; i < blockBytes; i++) block[i] = 97 + ((drawn >>> (4 * i)) & 15);
  return block;
}

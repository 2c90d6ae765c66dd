// The atoms that keys and values are made of, in every data model.

/** A bigint is a signed 64-bit integer; a string is well-formed Unicode. */
export type Scalar = null | boolean | number | bigint | string | Uint8Array;

/** A value that no row may hold: a defect of the caller, or unchecked bytes. */
export class RowValueError extends Error {
  override readonly name = 'RowValueError';
}

const loneSurrogate = /\p{Surrogate}/u;
const int64Min = -(2n ** 63n);
const int64Max = 2n ** 63n - 1n;

/**
 * Throws `RowValueError` for values that cannot be stored exactly: a lone surrogate, an integer
 * beyond 64 bits.
 */
export function checkScalar(value: Scalar): void {
  if (typeof value === 'string' && loneSurrogate.test(value)) {
    throw new RowValueError('a string with a lone surrogate cannot be stored');
  }
  if (typeof value === 'bigint' && !fitsInt64(value)) {
    throw new RowValueError(`integer ${value} does not fit in 64 bits`);
  }
}

export function fitsInt64(value: bigint): boolean {
  return value >= int64Min && value <= int64Max;
}

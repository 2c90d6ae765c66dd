// Handling of invalid bytes in all decoders: the file adds its path and the offset to the error.

import { CorruptFileError } from '../parts.ts';

/** Largest number of rows in a block, which bounds everything decoded. */
export const maxBlockRows = 65_536;

export function corrupt(what: string): never {
  throw new CorruptFileError(what);
}

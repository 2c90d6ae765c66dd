// What every decoder does about bytes that cannot be: the file adds its path and the offset.

import { CorruptFileError } from '../parts.ts';

/** No block has more rows; whatever is decoded is bounded by it. */
export const maxBlockRows = 65_536;

export function corrupt(what: string): never {
  throw new CorruptFileError(what);
}

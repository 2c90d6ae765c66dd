// Cursors of SCAN over a table of several partitions: which partition comes next, and where in it.
//
//   slot (14 bits) | epoch of the partition map (6 bits) | position in the partition (32 bits)
//
// Positions mean nothing in another partition. When the map has changed meanwhile, the walk goes on at the beginning of
// the partition that has the slot now: rows may come twice, as SCAN allows, and none is left out.

const positions = 2 ** 32;
const epochs = 64;
/** Cursors of an engine are below it. */
const engineCursors = 2 ** 48;
const step = engineCursors / positions;

export interface ScanPlace {
  readonly slot: number;
  /** The cursor for the engine; 0 at the beginning. */
  readonly cursor: number;
}

/** Engines number rows below 2^32, or walk hashes below 2^48, of which the lowest bits are left out. */
export function scanCursor(epoch: number, { slot, cursor }: ScanPlace, isHashed: boolean): number {
  const position = isHashed ? Math.floor(cursor / step) : cursor;
  return (slot * epochs + (epoch % epochs)) * positions + position;
}

/** `isHashed` says of a slot how its engine walks. */
export function scanPlace(
  cursor: number,
  epoch: number,
  isHashed: (slot: number) => boolean,
): ScanPlace {
  const position = cursor % positions;
  const rest = Math.floor(cursor / positions);
  const slot = Math.floor(rest / epochs);
  if (rest % epochs !== epoch % epochs) return { slot, cursor: 0 };
  return { slot, cursor: isHashed(slot) ? position * step : position };
}

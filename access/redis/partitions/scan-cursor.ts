// Cursors of SCAN over a table of several partitions: which partition comes next, and where in it.
//
//   remembered (1 bit) | slot (14 bits) | epoch of the partition map (6 bits) | position in the partition (32 bits)
//
// An engine that walks hashes remembers a place among many keys of one hash: its number is the position then.
// Positions mean nothing in another partition. When the map has changed meanwhile, the walk continues at the beginning of
// the partition that has the slot now: rows may come twice, as SCAN allows, and none is left out.

const positions = 2 ** 32;
const epochs = 64;
/** Cursors of an engine that are hashes are below it, and remembered places from it on. */
const hashCursors = 2 ** 48;
const step = hashCursors / positions;
/** The bit of remembered places. */
const remembered = 2 ** 52;

interface ScanPlace {
  readonly slot: number;
  /** The cursor for the engine; 0 at the beginning. */
  readonly cursor: number;
}

/**
 * Engines number rows below 2^32, or walk hashes below 2^48, of which the lowest bits are left out, and remember less than
 * 2^32 places.
 */
export function scanCursor(epoch: number, { slot, cursor }: ScanPlace, isHashed: boolean): number {
  const place = (slot * epochs + (epoch % epochs)) * positions;
  if (isHashed && cursor >= hashCursors) return remembered + place + (cursor - hashCursors);
  return place + (isHashed ? Math.floor(cursor / step) : cursor);
}

/** `isHashed` says of a slot how its engine walks. */
export function scanPlace(
  cursor: number,
  epoch: number,
  isHashed: (slot: number) => boolean,
): ScanPlace {
  const position = cursor % positions;
  const isRemembered = cursor >= remembered;
  const rest = Math.floor((isRemembered ? cursor - remembered : cursor) / positions);
  const slot = Math.floor(rest / epochs);
  if (rest % epochs !== epoch % epochs) return { slot, cursor: 0 };
  if (!isHashed(slot)) return { slot, cursor: isRemembered ? 0 : position };
  return { slot, cursor: isRemembered ? hashCursors + position : position * step };
}

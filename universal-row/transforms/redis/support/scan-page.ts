// Size of one reply of SCAN, HSCAN, SSCAN or ZSCAN: COUNT elements, and no more bytes than a page
// has (Amazon, "Fairness in multi-tenant systems"). The cursor continues from there, so that no
// element is left out.

/** Most bytes of an answer, and of them for the cursor and the framing. */
const pageBytes = 1_000_000;
const frameBytes = 256;

/** Rows walked for one reply, and the elements kept. */
interface PageWalk {
  /**
   * Walks this many elements from the cursor, keeps the matching ones, and returns the next cursor,
   * 0 at the end.
   */
  walk(cursor: number, budget: number): number;
  /** Size of the reply with all kept elements. */
  bytes(): number;
  kept(): number;
  /** Bytes of the keys and fields that were looked at. */
  scanned(): number;
  /** Only the first so many are kept. */
  cut(kept: number): void;
}

// Few enough that most of them fit into a page, and as many as nearly any client asks for.
const firstStep = 128;
// Bytes of names looked at and not kept, after which an answer ends with less than COUNT.
const scannedLimitBytes = 512 * 1024;

/**
 * Walks about `count`, or until a page is full. Something that is too large for any page is one by itself: a walk that
 * could not pass it would never end. Returns the cursor to continue from.
 */
export function walkPage(from: number, count: number, page: PageWalk): number {
  const limit = pageBytes - frameBytes;
  let cursor = from;
  let left = count;
  let step = Math.min(firstStep, count);
  // Rows scanned by walks that were cut off and are repeated in smaller steps.
  let again = 0;
  for (;;) {
    const kept = page.kept();
    const scanned = page.scanned();
    const next = page.walk(cursor, step);
    if (page.bytes() > limit && (kept > 0 || step > 1)) {
      page.cut(kept);
      again += page.scanned() - scanned;
      if (step === 1) return cursor;
      // Some of them may fit.
      step = Math.max(1, step >> 2);
      continue;
    }
    left -= step;
    const unkept = page.scanned() - again - page.bytes();
    if (next === 0 || left <= 0 || unkept > scannedLimitBytes) return next;
    cursor = next;
    step = Math.min(step * 2, left);
  }
}

// Sizes up to which OBJECT ENCODING reports Redis's compact encodings. They do not affect how rows
// are stored here; clients and test suites set them and check the reported encodings.

/** One set for the whole thread, as CONFIG SET applies to the whole server. */
export const encodingLimits = {
  hashEntries: 512,
  hashValueBytes: 64,
  setIntegers: 512,
  /** Redis 7.0 has none; of 7.2 it is 128. */
  setEntries: 0,
  setValueBytes: 64,
  rankedEntries: 128,
  rankedValueBytes: 64,
  /** In 7.0 lists are quicklists, whatever this says. */
  listSize: -2,
  /** A HyperLogLog beyond it is made dense: the one limit that rows are kept by. */
  hllSparseBytes: 3000,
  /** Approximate trimming removes entries of a stream by so many. */
  streamNodeEntries: 100,
};

export type EncodingLimit = keyof typeof encodingLimits;

/** Elements that OBJECT ENCODING looks at: rows with more are never told to be compact. */
export const maxCompactEntries = 65_536;

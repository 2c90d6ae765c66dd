// Frames between a gateway and the pods of time series of a node: docs/pod-protocol.md has their form. The stream of a
// frame is the number that the gateway gave the request.

/** Purpose of links on which these frames are. */
export const seriesPurpose = 'series';

export const SeriesFrame = {
  /** Bytes of a request that has more. */
  requestPart: 34,
  /** A request, or its last bytes. */
  request: 35,
  /** Credit: the gateway accepts this many more bytes of the answer. */
  credit: 36,
  /** The gateway asks for the next part of a scan's series. */
  read: 37,
  /** The gateway no longer needs the request. */
  cancel: 38,
  /** A part of an answer that can be used by itself. */
  answerPart: 39,
  /** The end of an answer. */
  answer: 40,
  /** Rows and summaries of the series of a scan. */
  pieces: 41,
  /** Bytes of a frame of pieces that has more, as of a row with very long texts. */
  piecesPart: 42,
} as const;

/** Items of a frame `read`. */
export const ReadItem = { open: 1, more: 2 } as const;

/** Items of a frame `pieces`, each of one cursor. */
export const PieceKind = { rows: 1, summary: 2, end: 3, failed: 4 } as const;

/** Bits of the first byte of a part of a catalog: it begins one, it ends one. */
export const CatalogPart = { first: 1, last: 2 } as const;

/** Requests larger than this go in parts of as much. */
export const partBytes = 1024 * 1024;
/** Approximate size in bytes of a part of an answer, and of a frame of pieces. */
export const answerPartBytes = 64 * 1024;
/** Bytes of an answer that may be sent before the gateway has granted credit. */
export const firstCredit = 1024 * 1024;
/** Largest request. */
export const maxRequestBytes = 64 * 1024 * 1024;
/** Largest total of pieces in parts. */
export const maxPieceBytes = 1024 * 1024 * 1024;

// The control plane's metadata: small JSON documents in named collections. There are three stores: on the disk of a
// single server, in MongoDB, and replicated on the nodes of a cluster. All pass the same suite
// (document-store-conformance.ts).

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

export interface StoredDocument {
  collection: string;
  id: string;
  /** Grows with every change of anything in the store; never 0. */
  revision: number;
  body: Json;
}

/** One step of the store's history. Its revision is its place in it. */
export interface DocumentChange {
  revision: number;
  collection: string;
  id: string;
  /** The new content; undefined after a removal. */
  body: Json | undefined;
}

export interface DocumentWrite {
  collection: string;
  id: string;
  /** undefined removes it. */
  body: Json | undefined;
  /** The revision the caller has seen; 0 when there must be none. */
  expected: number;
}

/** All documents as they were at one revision, by collection and id. */
export interface Snapshot {
  revision: number;
  documents: StoredDocument[];
}

/** The part of a store that a `ChangeFollower` uses. */
export interface ChangeSource {
  snapshot(): Promise<Snapshot>;
  /**
   * The first of the changes after a revision, in order and always whole writes; none only if there are
   * none. Throws `HistoryGone` when some of them are kept no more.
   */
  changes(after: number): Promise<DocumentChange[]>;
  /**
   * Calls soon after a possible change, where the store can notice one. Returns a function that stops it. Followers
   * also poll every `pollMs`.
   */
  onHint(listener: () => void): () => void;
  readonly pollMs: number;
}

/**
 * Every call ends: a call that cannot be completed in time rejects with `MetadataUnavailable`. Names that no store
 * could keep, and writes beyond `maxWriteBytes`, cause a `RangeError`.
 */
export interface DocumentStore extends ChangeSource {
  get(collection: string, id: string): Promise<StoredDocument | undefined>;
  /** By id, in the order of their UTF-8 bytes; as they were at one revision. */
  list(collection: string): Promise<StoredDocument[]>;
  /**
   * Makes all changes or none, durably, and returns the revision of each. Throws `RevisionConflict` if
   * one of the documents is not at the revision expected. A document may come once in a write.
   */
  write(changes: readonly DocumentWrite[]): Promise<number[]>;
  /**
   * Sees every change after `revision`, in order, once it is durable. Returns how to stop. `missed` is
   * called if some came and went while the store was out of reach for too long; then it continues.
   */
  watch(listener: (change: DocumentChange) => void, missed?: () => void): () => void;
  /** Revision of the last change this store has seen; 0 in an empty store. */
  readonly revision: number;
  close(): Promise<void>;
}

/** Another writer changed the document first. */
export class RevisionConflict extends Error {
  override readonly name = 'RevisionConflict';

  constructor(collection: string, id: string, expected: number, found: number) {
    super(`${collection}/${id} is at revision ${found}, not ${expected}`);
  }
}

/** The caller is too far behind: it must take a snapshot. */
export class HistoryGone extends Error {
  override readonly name = 'HistoryGone';

  constructor(after: number, oldest: number) {
    super(`changes after revision ${after} are gone; the oldest kept is ${oldest}`);
  }
}

/** The store is out of reach, or too slow. Cached documents can still be used. */
export class MetadataUnavailable extends Error {
  override readonly name = 'MetadataUnavailable';
  /** For a write: `none` if it was not made and never will be; the feed reveals the result of an `unknown` one. */
  readonly outcome: 'none' | 'unknown';
  /** An outage, not a defect: it is logged in one line, without a stack. */
  readonly code = 'METADATA_UNAVAILABLE';
  /** As HTTP tells it. */
  readonly statusCode = 503;

  constructor(message: string, outcome: 'none' | 'unknown' = 'none', options?: ErrorOptions) {
    super(message, options);
    this.outcome = outcome;
  }
}

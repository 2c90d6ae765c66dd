// Where the control plane keeps what it knows: small JSON documents in named collections. One store
// serves a single server from its own disk; another may stand behind the same calls for a cluster.

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
  /** What it is now; undefined when it was removed. */
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

export interface DocumentStore {
  get(collection: string, id: string): Promise<StoredDocument | undefined>;
  /** By id, in the order of their UTF-8 bytes. */
  list(collection: string): Promise<StoredDocument[]>;
  /**
   * Makes all changes or none, durably, and returns the revision of each. Throws `RevisionConflict` if
   * one of the documents is not at the revision expected.
   */
  write(changes: readonly DocumentWrite[]): Promise<number[]>;
  /** Changes after a revision, in order. Throws `HistoryGone` when some of them are kept no more. */
  changes(after: number): Promise<DocumentChange[]>;
  /** Sees every change made from now on, in order, after it is durable. Returns how to stop. */
  watch(listener: (change: DocumentChange) => void): () => void;
  /** Revision of the last change; 0 in an empty store. */
  readonly revision: number;
  close(): Promise<void>;
}

/** Someone else changed the document first. */
export class RevisionConflict extends Error {
  override readonly name = 'RevisionConflict';

  constructor(collection: string, id: string, expected: number, found: number) {
    super(`${collection}/${id} is at revision ${found}, not ${expected}`);
  }
}

/** The caller is too far behind: it must list anew. */
export class HistoryGone extends Error {
  override readonly name = 'HistoryGone';

  constructor(after: number, oldest: number) {
    super(`changes after revision ${after} are gone; the oldest kept is ${oldest}`);
  }
}

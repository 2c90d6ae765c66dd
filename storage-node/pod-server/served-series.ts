// Interfaces of the served pods of time series, for a gateway's link and its requests.

import type { PodAdmission } from '../../contracts/pod-admission.ts';
import type { CatalogChange, Database, SeriesStore } from '../../contracts/series-store.ts';
import type { MaybePromise } from '../../universal-row/maybe-promise.ts';
import type { WireWriter } from '../../universal-row/protocol/wire.ts';
import type { CatalogFollower } from './catalog-follower.ts';
import type { GroupSeriesKeys } from './series-keys.ts';

/** A pod as it is served. */
export interface ServedStore extends SeriesStore {
  /** Another one whenever there may be other databases or policies than before. */
  readonly catalogVersion: number;
  /** Like `change`, ignoring the database's properties. */
  administer(change: CatalogChange): MaybePromise<void>;
  /** Last entry of its log that reads may have seen; absent where there is one copy. */
  readonly appliedIndex?: number;
  /** `databases` as they are kept, without the properties in force; absent where that is the same. */
  keptDatabases?(): readonly Database[];
}

export interface ServedSeries {
  readonly store: ServedStore;
  readonly tenant: number;
  /** Of the placement; absent: not checked. */
  readonly epoch?: number;
  /** Resolves once all changes so far are as durable as an answer requires. */
  readonly safe: () => Promise<void>;
}

/** Compiles the patterns of one request, which share limits. */
export interface PatternCompiler {
  /** Throws an error with a text for the client. */
  compile(source: string): { readonly regexp: { test(text: string): boolean } };
}

export interface SeriesServerOptions {
  /** Undefined where this process has no replica of the group. Asked for every request. */
  storeOf: (group: number) => ServedSeries | undefined;
  patterns: () => PatternCompiler;
  /** Schedules requests beside other work of the thread. */
  admission?: PodAdmission | undefined;
  report: (level: 'info' | 'warn' | 'error', message: string, fields?: object) => void;
}

/** State that the links share. */
export interface SeriesHost {
  readonly options: SeriesServerOptions;
  readonly keys: GroupSeriesKeys;
}

/** The link, as a request uses it. */
export interface SeriesRequestLink {
  readonly host: SeriesHost;
  readonly isClosed: boolean;
  /** The socket takes no more for now. */
  readonly isFull: boolean;
  /** Resolves once the socket takes more, or the link has ended. */
  whenFree(): Promise<void>;
  send(type: number, stream: number, write: (payload: WireWriter) => void): void;
  sendPayload(type: number, stream: number, payload: Buffer): void;
  /** Pieces, which may be larger than a frame. */
  sendPieces(stream: number, payload: Buffer): void;
  /** Ends the link. */
  fail(error: Error): void;
  follow(follower: CatalogFollower): void;
  unfollow(follower: CatalogFollower): void;
  /** Resolves when the gateway was told of the catalog of a group as it is. */
  tellCatalog(group: number): Promise<void>;
  /** A request is over. */
  over(stream: number): void;
}

// The databases of a group at another node, as that node reports them.

import { readDatabase } from '../../../contracts/series-protocol/answers.ts';
import { CatalogPart } from '../../../contracts/series-protocol/frames.ts';
import type { Database } from '../../../contracts/series-store.ts';
import { Deferred } from '../../../universal-row/deferred.ts';
import type { WireReader, WireWriter } from '../../../universal-row/protocol/wire.ts';
import type { SeriesLink, StreamUser } from './series-link.ts';

/** Milliseconds until the next attempt after the node has refused. */
const retryMs = 250;

export class FollowedCatalog implements StreamUser {
  readonly #link: SeriesLink;
  readonly #request: () => WireWriter;
  readonly #known = new Deferred<void>();
  readonly #linkIsUp = (): void => this.#follow();
  #stream = 0;
  #retry: NodeJS.Timeout | undefined;
  /** Databases of the catalog that is being received. */
  #coming: Database[] = [];
  databases: readonly Database[] = [];
  byName: ReadonlyMap<string, Database> = new Map();
  isKnown = false;
  /** The node tells of changes, and has told the databases since it does. */
  isFollowed = false;
  /** Counts what was told. */
  version = 0;

  constructor(link: SeriesLink, request: () => WireWriter) {
    this.#link = link;
    this.#request = request;
    link.listen(this.#linkIsUp);
  }

  /** Resolves once `isKnown`. */
  get known(): Promise<void> {
    return this.#known.promise;
  }

  #follow(): void {
    clearTimeout(this.#retry);
    if (!this.#link.isUp || this.#stream !== 0) return;
    this.#stream = this.#link.request(this.#request().view(), this);
  }

  part(reader: WireReader): void {
    const flags = reader.u8();
    if (flags & CatalogPart.first) this.#coming = [];
    while (reader.left > 0) this.#coming.push(readDatabase(reader));
    if ((flags & CatalogPart.last) === 0) return;
    this.databases = this.#coming;
    this.byName = new Map(this.databases.map((database) => [database.name, database]));
    this.#coming = [];
    this.version++;
    this.isKnown = true;
    this.isFollowed = true;
    this.#known.resolve();
  }

  done(): void {
    this.refused();
  }

  /** The node has refused: known databases stay known, and the request is repeated later. */
  refused(): void {
    this.#stream = 0;
    this.isFollowed = false;
    this.#retry = setTimeout(this.#linkIsUp, retryMs).unref();
  }

  failed(): void {
    this.#stream = 0;
    this.isFollowed = false;
  }

  close(): void {
    clearTimeout(this.#retry);
    this.#link.unlisten(this.#linkIsUp);
    if (this.#stream !== 0) this.#link.cancel(this.#stream);
  }
}

// One group of time series at another node, with the interface of a pod in this thread. The class neither looks for
// the leader nor repeats requests: group-series-store.ts does both.

import {
  readDatabase,
  readFieldType,
  readOutcome,
} from '../../../contracts/series-protocol/answers.ts';
import { maxRequestBytes } from '../../../contracts/series-protocol/frames.ts';
import {
  readStrings,
  RequestKind,
  writeChange,
  writeHead,
  writeScan,
  writeSelection,
} from '../../../contracts/series-protocol/requests.ts';
import {
  type CatalogChange,
  type Database,
  DeadlineError,
  type FieldKey,
  LateDeletionError,
  OutcomeUnknownError,
  type ScanRequest,
  isAppliedState,
  type SeriesReads,
  type SeriesScan,
  type SeriesSelection,
  type SeriesStore,
  TooLargeError,
  UnavailableError,
  UnreachableError,
  type WriteOutcome,
} from '../../../contracts/series-store.ts';
import { Deferred } from '../../../universal-row/deferred.ts';
import { BatchWriter } from '../../../universal-row/protocol/series-batch.ts';
import { type WireReader, WireWriter } from '../../../universal-row/protocol/wire.ts';
import type { FieldType } from '../../../universal-row/series/field-type.ts';
import { ageOf, partId } from '../../../universal-row/series/batch-identity.ts';
import type { PointBatch } from '../../../universal-row/series/point-batch.ts';
import { awaited, type Slices } from '../../../universal-row/slices.ts';
import type { DatabaseSource } from '../tenants/database-index.ts';
import { FollowedCatalog } from './followed-catalog.ts';
import { RemoteCall } from './remote-call.ts';
import { RemoteScan, RemoteSeries } from './remote-scan.ts';
import type { SeriesLink, StreamUser } from './series-link.ts';

export interface RemoteSeriesOptions {
  readonly link: SeriesLink;
  readonly group: number;
  readonly tenant: number;
  /** Epoch of the placement; 0 or absent: not checked. */
  readonly epoch?: (() => number) | undefined;
  /** Milliseconds that a request has; 0 for no limit. */
  readonly timeoutMs: () => number;
  /** Whether all nodes know marks of deletions. Absent: no. */
  readonly knowsMarks?: (() => boolean) | undefined;
}

type MeasurementOf = SeriesSelection & { measurement: string };

/** A larger batch goes in requests of about as much, one after the other. */
const batchBytes = 4 * 1024 * 1024;
const keptWriters = 4;
/** Maximum retries of a deletion. Each other deletion that ends before it begins causes one retry. */
const mostMarks = 100;

export class RemoteSeriesStore implements SeriesStore, DatabaseSource {
  readonly #options: RemoteSeriesOptions;
  readonly #catalog: FollowedCatalog;
  readonly #writers: BatchWriter[] = [];
  /** The highest index of the group's log that an answer may have seen. */
  seenIndex = 0;
  /** Of deletions, as the node told last. */
  #mark = 0;

  constructor(options: RemoteSeriesOptions) {
    this.#options = options;
    this.#catalog = new FollowedCatalog(options.link, () => this.#begin(RequestKind.follow, 0));
  }

  get link(): SeriesLink {
    return this.#options.link;
  }

  /** Ends the use of the store. */
  close(): void {
    this.#catalog.close();
  }

  // ---- databases

  /** Whether the node has sent its databases. Before that, `databases` is empty. */
  get hasCatalog(): boolean {
    return this.#catalog.isKnown;
  }

  /** Resolves when `hasCatalog`. */
  get ready(): Promise<void> {
    return this.#catalog.known;
  }

  get catalogVersion(): number {
    return this.#catalog.version;
  }

  databases(): readonly Database[] {
    return this.#catalog.databases;
  }

  database(name: string): Database | undefined {
    return this.#catalog.byName.get(name);
  }

  /**
   * Resolves when `databases` includes all changes that were answered before, to the last entry of the log that may be in
   * them.
   */
  async refresh(): Promise<number> {
    const request = this.#begin(RequestKind.refresh);
    const index = await this.#ask(request, false, (_, applied) => applied);
    // The node may have opened its replica only now.
    if (!this.#catalog.isFollowed) throw new UnreachableError();
    return index;
  }

  /** The databases as of now, without the properties in force. */
  async keptDatabases(): Promise<readonly Database[]> {
    const databases: Database[] = [];
    const part = (reader: WireReader): void => {
      while (reader.left > 0) databases.push(readDatabase(reader));
    };
    await this.#call(this.#begin(RequestKind.kept), false, () => undefined, part).answer;
    return databases;
  }

  change(change: CatalogChange): Promise<void> {
    return this.#change(RequestKind.change, change);
  }

  /** Like `change`, ignoring the database's properties. */
  administer(change: CatalogChange): Promise<void> {
    return this.#change(RequestKind.administer, change);
  }

  async #change(kind: RequestKind, change: CatalogChange): Promise<void> {
    const writer = this.#begin(kind);
    writeChange(writer, change);
    await this.#ask(writer, true, () => undefined);
  }

  // ---- points

  async write(database: string, retentionPolicy: string, batch: PointBatch): Promise<WriteOutcome> {
    const rows = this.#writers.pop() ?? new BatchWriter();
    const total: WriteOutcome = { written: 0, dropped: 0, error: undefined };
    rows.begin(batch);
    try {
      for (let isFirst = true; isFirst || rows.hasMore; isFirst = false) {
        if (this.link.isFull) await this.link.whenFree();
        const writer = this.#begin(RequestKind.write);
        writer.string(database);
        writer.string(retentionPolicy);
        const first = rows.written;
        rows.write(writer, batchBytes);
        const count = rows.written - first;
        if (batch.identity !== undefined) {
          const { id } = batch.identity;
          const isAll = count === batch.rows;
          writer.string(isAll ? id : partId(id, first, count, batch.rows));
          writer.f64(ageOf(batch.identity));
        }
        if (writer.pos > maxRequestBytes) throw new TooLargeError('a point is too large');
        add(total, await this.#written(writer, isFirst));
      }
    } finally {
      if (this.#writers.length < keptWriters) this.#writers.push(rows);
    }
    return total;
  }

  async #written(writer: WireWriter, isFirst: boolean): Promise<WriteOutcome> {
    try {
      return await this.#ask(writer, true, readOutcome);
    } catch (error) {
      // Rows of the requests before are stored: no error may say that nothing was done.
      throw isFirst || !(error instanceof UnavailableError) ? error : new OutcomeUnknownError();
    }
  }

  *deletePoints(selection: SeriesSelection): Slices<void> {
    yield* this.#delete(RequestKind.deletePoints, selection);
  }

  *dropSeries(selection: SeriesSelection): Slices<void> {
    yield* this.#delete(RequestKind.dropSeries, selection);
  }

  *#delete(kind: RequestKind, selection: SeriesSelection): Slices<void> {
    const { knowsMarks } = this.#options;
    for (let left = mostMarks; ; left--) {
      const sent = knowsMarks?.() === true ? { ...selection, mark: this.#mark } : selection;
      try {
        return yield* this.#asked(this.#selecting(kind, sent), true, () => undefined);
      } catch (error) {
        if (!(error instanceof LateDeletionError) || left === 0) throw error;
        this.#mark = error.mark;
      }
    }
  }

  // ---- reads

  *scan(request: ScanRequest): Slices<SeriesScan> {
    const writer = this.#begin(RequestKind.scan);
    writeScan(writer, request, this.#options.group);
    const opening = new ScanOpening(this.link, request, this.#saw(request.reads));
    const timer = opening.begin(writer.view(), this.#options.timeoutMs());
    let isOpen = false;
    try {
      const scan = yield* awaited(opening.opened.promise);
      isOpen = true;
      return scan;
    } finally {
      clearTimeout(timer);
      if (!isOpen) opening.abandon();
    }
  }

  measurements(selection: SeriesSelection): Slices<string[]> {
    return this.#names(this.#selecting(RequestKind.measurements, selection), selection.reads);
  }

  *fieldKeys(selection: MeasurementOf): Slices<FieldKey[]> {
    const keys: FieldKey[] = [];
    const part = (reader: WireReader): void => {
      while (reader.left > 0) {
        const name = reader.string();
        keys.push({ name, type: readFieldType(reader) ?? 'float' });
      }
    };
    const writer = this.#selecting(RequestKind.fieldKeys, selection);
    yield* this.#asked(writer, false, () => undefined, part, selection.reads);
    return keys;
  }

  tagKeys(selection: MeasurementOf): Slices<string[]> {
    return this.#names(this.#selecting(RequestKind.tagKeys, selection), selection.reads);
  }

  tagValues(selection: MeasurementOf, tag: string): Slices<string[]> {
    const writer = this.#selecting(RequestKind.tagValues, selection);
    writer.string(tag);
    return this.#names(writer, selection.reads);
  }

  seriesKeys(selection: SeriesSelection): Slices<string[]> {
    return this.#names(this.#selecting(RequestKind.seriesKeys, selection), selection.reads);
  }

  *seriesCardinality(selection: SeriesSelection): Slices<number> {
    const writer = this.#selecting(RequestKind.seriesCardinality, selection);
    const done = (reader: WireReader): number => reader.varint();
    return yield* this.#asked(writer, false, done, undefined, selection.reads);
  }

  *#names(writer: WireWriter, reads: SeriesReads | undefined): Slices<string[]> {
    const names: string[] = [];
    const part = (reader: WireReader): void => {
      while (reader.left > 0) names.push(reader.string());
    };
    yield* this.#asked(writer, false, () => undefined, part, reads);
    return names;
  }

  // ---- requests

  #begin(kind: RequestKind, deadlineMs = Math.ceil(this.#options.timeoutMs())): WireWriter {
    const { group, tenant, epoch } = this.#options;
    const writer = new WireWriter(256);
    writeHead(writer, { kind, group, tenant, epoch: epoch?.() ?? 0, deadlineMs });
    return writer;
  }

  #selecting(kind: RequestKind, selection: SeriesSelection): WireWriter {
    const writer = this.#begin(kind);
    writeSelection(writer, selection, this.#options.group);
    return writer;
  }

  #saw(reads: SeriesReads | undefined): (applied: number) => void {
    const isBounded = reads !== undefined && reads !== 'strong' && !isAppliedState(reads);
    const session = isBounded ? reads.session : undefined;
    return (applied) => {
      this.seenIndex = Math.max(this.seenIndex, applied);
      session?.saw(this.#options.group, applied);
    };
  }

  #call<T>(
    writer: WireWriter,
    changes: boolean,
    done: (reader: WireReader, applied: number) => T,
    part?: (reader: WireReader) => void,
    reads?: SeriesReads,
  ): RemoteCall<T> {
    const { timeoutMs } = this.#options;
    const saw = this.#saw(reads);
    const call = new RemoteCall<T>({ link: this.link, changes, done, part, saw });
    call.begin(writer.view(), timeoutMs());
    return call;
  }

  #ask<T>(
    writer: WireWriter,
    changes: boolean,
    done: (reader: WireReader, applied: number) => T,
  ): Promise<T> {
    return this.#call(writer, changes, done).answer;
  }

  /** A request that is cancelled when the caller gives up. */
  *#asked<T>(
    writer: WireWriter,
    changes: boolean,
    done: (reader: WireReader, applied: number) => T,
    part?: (reader: WireReader) => void,
    reads?: SeriesReads,
  ): Slices<T> {
    const call = this.#call(writer, changes, done, part, reads);
    try {
      return yield* awaited(call.answer);
    } finally {
      call.abandon();
    }
  }

  // ---- ticks: answers come once they are as safe as they are to be

  endTick(): number {
    return -1;
  }

  whenSafe(_position: number, then: () => void): void {
    then();
  }
}

function add(total: WriteOutcome, { written, dropped, error, logBytes }: WriteOutcome): void {
  total.written += written;
  total.dropped += dropped;
  total.error ??= error;
  if (logBytes !== undefined) total.logBytes = (total.logBytes ?? 0) + logBytes;
}

/** A scan from its request on. */
class ScanOpening implements StreamUser {
  readonly opened = new Deferred<SeriesScan>();
  readonly #link: SeriesLink;
  readonly #request: ScanRequest;
  readonly #saw: (applied: number) => void;
  readonly #series: RemoteSeries[] = [];
  #stream = 0;
  #scan: RemoteScan | undefined;
  #isOver = false;

  constructor(link: SeriesLink, request: ScanRequest, saw: (applied: number) => void) {
    this.#link = link;
    this.#request = request;
    this.#saw = saw;
    // It may fail before anyone waits for it.
    this.opened.promise.catch(() => undefined);
  }

  begin(payload: Buffer, timeoutMs: number): NodeJS.Timeout | undefined {
    this.#stream = this.#link.request(payload, this);
    if (timeoutMs === 0) return undefined;
    return setTimeout(() => {
      if (this.#scan !== undefined) return;
      this.#link.cancel(this.#stream);
      this.refused(new DeadlineError());
    }, timeoutMs);
  }

  part(reader: WireReader): void {
    const hasGroups = reader.u8() === 1;
    const { totals = [] } = this.#request;
    while (reader.left > 0) {
      const index = this.#series.length;
      if (!hasGroups) this.#series.push(new RemoteSeries(index, reader.string()));
      else {
        const values = readStrings(reader);
        const tags = new Map(totals.map((tag, i) => [tag, values[i] ?? '']));
        this.#series.push(new RemoteSeries(index, '', tags));
      }
    }
  }

  done(reader: WireReader, applied: number): void {
    const count = reader.varint();
    const fieldTypes: (FieldType | undefined)[] = [];
    for (let i = 0; i < count; i++) fieldTypes.push(readFieldType(reader));
    const hasGroups = reader.u8() === 1;
    const groups = reader.varint();
    reader.done();
    this.#saw(applied);
    this.#scan = new RemoteScan({
      link: this.#link,
      stream: this.#stream,
      fields: this.#request.fields.length,
      fieldTypes,
      series: this.#series,
      seriesCount: hasGroups ? groups : undefined,
    });
    this.opened.resolve(this.#scan);
    if (this.#isOver) this.#scan.close();
  }

  refused(error: Error): void {
    this.opened.reject(error);
  }

  pieces(payload: Buffer): void {
    if (this.#scan !== undefined) this.#scan.pieces(payload);
  }

  failed(): void {
    const error = new UnavailableError('the link to the node that has this database ended');
    this.opened.reject(error);
    this.#scan?.failed(error);
  }

  /** The caller will not read it. */
  abandon(): void {
    this.#isOver = true;
    if (this.#scan !== undefined) this.#scan.close();
    else this.#link.cancel(this.#stream);
  }
}

// One request of a gateway to a pod of time series, from its bytes to the end of its answer. It runs in time slices,
// and writes no more of the answer than the gateway accepts.

import { TimeSlice } from '../../contracts/pod-admission.ts';
import {
  Ending,
  writeDatabase,
  writeError,
  writeFieldType,
  writeOutcome,
} from '../../contracts/series-protocol/answers.ts';
import type { CompilePattern } from '../../contracts/series-protocol/filters.ts';
import { answerPartBytes, SeriesFrame } from '../../contracts/series-protocol/frames.ts';
import {
  readChange,
  readHead,
  readScan,
  readSelection,
  RequestKind,
  type RequestHead,
  writeStrings,
} from '../../contracts/series-protocol/requests.ts';
import {
  type CatalogChange,
  DeadlineError,
  type FieldKey,
  NotLeaderError,
  OutcomeUnknownError,
  type ScanRequest,
  SeriesError,
  type SeriesScan,
  type SeriesSelection,
  StaleEpochError,
} from '../../contracts/series-store.ts';
import { readBatch } from '../../universal-row/protocol/series-batch.ts';
import { WireError, type WireReader, WireWriter } from '../../universal-row/protocol/wire.ts';
import { identityOf } from '../../universal-row/series/batch-identity.ts';
import type { PointBatch } from '../../universal-row/series/point-batch.ts';
import type { Slices } from '../../universal-row/slices.ts';
import { CatalogFollower } from './catalog-follower.ts';
import { ServedScan } from './served-scan.ts';
import type { PatternCompiler, SeriesRequestLink, ServedSeries } from './served-series.ts';

/** Longest time slice while no other tenant competes. */
const sliceMs = 8;

/** Thrown inside a request that the gateway has cancelled. */
class Cancelled extends Error {}

/** The request after its header. */
type Asked =
  | { kind: 'write'; database: string; policy: string; batch: PointBatch }
  | { kind: 'change'; change: CatalogChange; administers: boolean }
  | { kind: 'scan'; request: ScanRequest }
  | { kind: 'selection'; selection: SeriesSelection; tag: string }
  | { kind: 'catalog' };

type MeasurementOf = SeriesSelection & { measurement: string };

export class ServedRequest {
  readonly #link: SeriesRequestLink;
  readonly #stream: number;
  #credit: number;
  #creditWaits: (() => void)[] = [];
  #isCancelled = false;
  #isOver = false;
  /** Monotonic milliseconds; Infinity for none. */
  #deadline = Infinity;
  #scan: ServedScan | undefined;
  #follower: CatalogFollower | undefined;
  /** Ends the following. */
  #followed: (() => void) | undefined;

  constructor(link: SeriesRequestLink, stream: number, credit: number) {
    this.#link = link;
    this.#stream = stream;
    this.#credit = credit;
  }

  /** Reads the request at once, as its bytes do not stay; throws a `WireError`. `done` is called once it is answered. */
  begin(reader: WireReader, done: () => void): void {
    const head = readHead(reader);
    if (head.deadlineMs > 0) this.#deadline = performance.now() + head.deadlineMs;
    let asked: Asked | Error;
    try {
      asked = this.#read(head, reader);
      reader.done();
    } catch (error) {
      // A pattern that cannot be compiled is the client's error.
      if (error instanceof WireError || !(error instanceof Error)) throw error;
      asked = error instanceof SeriesError ? error : new SeriesError(error.message);
    }
    void this.#answer(head, asked).finally(() => {
      done();
      if (this.#scan === undefined) this.#end();
    });
  }

  #read(head: RequestHead, reader: WireReader): Asked {
    const { kind } = head;
    let compiler: PatternCompiler | undefined;
    const compile: CompilePattern = (source) => {
      compiler ??= this.#link.host.options.patterns();
      const { regexp } = compiler.compile(source);
      return (value) => regexp.test(value);
    };
    switch (kind) {
      case RequestKind.write: {
        const [database, policy] = [reader.string(), reader.string()];
        const batch = readBatch(reader, this.#link.host.keys.of(head.group));
        if (reader.left > 0) {
          batch.identity = identityOf(reader.string(), reader.f64());
        }
        return { kind: 'write', database, policy, batch };
      }
      case RequestKind.change:
      case RequestKind.administer: {
        const administers = kind === RequestKind.administer;
        return { kind: 'change', change: readChange(reader), administers };
      }
      case RequestKind.scan:
        return { kind: 'scan', request: readScan(reader, compile) };
      case RequestKind.follow:
      case RequestKind.refresh:
      case RequestKind.kept:
        return { kind: 'catalog' };
      default: {
        const selection = readSelection(reader, compile);
        const tag = kind === RequestKind.tagValues ? reader.string() : '';
        return { kind: 'selection', selection, tag };
      }
    }
  }

  // ---- the answer

  async #answer(head: RequestHead, asked: Asked | Error): Promise<void> {
    try {
      if (asked instanceof Error) throw asked;
      const served = this.#servedBy(head);
      const slice = new TimeSlice(this.#link.host.options.admission, head.tenant, sliceMs);
      if (slice.isContended) await slice.yield();
      this.#expectWanted();
      await this.#run(head, asked, served, slice);
    } catch (error) {
      this.#failed(error);
    }
  }

  #failed(error: unknown): void {
    if (error instanceof Cancelled || this.#isCancelled) return;
    if (!(error instanceof SeriesError)) {
      const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
      this.#link.host.options.report('error', `a request of a gateway failed: ${message}`);
    }
    this.#link.send(SeriesFrame.answer, this.#stream, (writer) => writeError(writer, error));
  }

  /** Throws where this is not the place to ask. */
  #servedBy({ group, tenant, epoch }: RequestHead): ServedSeries {
    const served = this.#link.host.options.storeOf(group);
    if (served === undefined || served.tenant !== tenant) throw new NotLeaderError(0);
    if (epoch !== 0 && served.epoch !== undefined && epoch !== served.epoch) {
      throw new StaleEpochError();
    }
    return served;
  }

  #expectWanted(): void {
    if (this.#isCancelled || this.#link.isClosed) throw new Cancelled();
    if (performance.now() > this.#deadline) throw new DeadlineError();
  }

  async #run(
    head: RequestHead,
    asked: Asked,
    served: ServedSeries,
    slice: TimeSlice,
  ): Promise<void> {
    const { store, safe } = served;
    switch (asked.kind) {
      case 'write': {
        const outcome = await store.write(asked.database, asked.policy, asked.batch);
        await safe();
        this.#done(served, (writer) => writeOutcome(writer, outcome));
        return;
      }
      case 'change':
        await (asked.administers ? store.administer(asked.change) : store.change(asked.change));
        await safe();
        await this.#link.tellCatalog(head.group);
        this.#done(served);
        return;
      case 'scan':
        await this.#openScan(asked.request, served, slice);
        return;
      case 'catalog':
        // A read of nothing: the state here includes all that was committed before.
        await this.#finish(store.measurements({ database: '', reads: 'strong' }), slice);
        await this.#tellDatabases(head, served, slice);
        return;
      case 'selection':
        await this.#select(head, asked.selection, asked.tag, served, slice);
    }
  }

  async #tellDatabases(
    { kind, group }: RequestHead,
    served: ServedSeries,
    slice: TimeSlice,
  ): Promise<void> {
    const { store } = served;
    if (kind === RequestKind.follow) {
      await this.#follow(group);
      return;
    }
    if (kind === RequestKind.refresh) await this.#link.tellCatalog(group);
    else {
      const databases = store.keptDatabases?.() ?? store.databases();
      await this.#sendItems(databases, slice, undefined, writeDatabase);
    }
    this.#done(served);
  }

  async #select(
    { kind }: RequestHead,
    selection: SeriesSelection,
    tag: string,
    served: ServedSeries,
    slice: TimeSlice,
  ): Promise<void> {
    const { store, safe } = served;
    if (kind === RequestKind.deletePoints || kind === RequestKind.dropSeries) {
      const isPoints = kind === RequestKind.deletePoints;
      const slices = isPoints ? store.deletePoints(selection) : store.dropSeries(selection);
      await this.#finish(slices, slice).catch((error: unknown) => {
        // A part of it may be done.
        throw error instanceof DeadlineError ? new OutcomeUnknownError() : error;
      });
      await safe();
      this.#done(served);
      return;
    }
    if (kind === RequestKind.seriesCardinality) {
      const count = await this.#finish(store.seriesCardinality(selection), slice);
      this.#done(served, (writer) => writer.varint(count));
      return;
    }
    if (kind === RequestKind.measurements || kind === RequestKind.seriesKeys) {
      const isSeries = kind === RequestKind.seriesKeys;
      const slices = isSeries ? store.seriesKeys(selection) : store.measurements(selection);
      await this.#list(served, slice, slices, (writer, name: string) => writer.string(name));
      return;
    }
    if (selection.measurement === undefined) throw new SeriesError('a measurement is missing');
    const of = selection as MeasurementOf;
    if (kind === RequestKind.fieldKeys) {
      await this.#list(served, slice, store.fieldKeys(of), (writer, key: FieldKey) => {
        writer.string(key.name);
        writeFieldType(writer, key.type);
      });
      return;
    }
    const slices = kind === RequestKind.tagKeys ? store.tagKeys(of) : store.tagValues(of, tag);
    await this.#list(served, slice, slices, (writer, name: string) => writer.string(name));
  }

  async #list<T>(
    served: ServedSeries,
    slice: TimeSlice,
    slices: Slices<T[]>,
    write: (writer: WireWriter, item: T) => void,
  ): Promise<void> {
    const items = await this.#finish(slices, slice);
    await this.#sendItems(items, slice, undefined, write);
    this.#done(served);
  }

  /** In parts, each of which begins with `prefix`, if there is one. */
  async #sendItems<T>(
    items: readonly T[],
    slice: TimeSlice,
    prefix: number | undefined,
    write: (writer: WireWriter, item: T) => void,
  ): Promise<void> {
    const begins = prefix === undefined ? 0 : 1;
    const writer = new WireWriter(answerPartBytes + 4096);
    if (prefix !== undefined) writer.u8(prefix);
    for (const item of items) {
      write(writer, item);
      if (writer.pos < answerPartBytes) continue;
      await this.#sendPart(writer.view());
      writer.pos = begins;
      if (slice.isOver) await slice.yield();
      this.#expectWanted();
    }
    if (writer.pos > begins) await this.#sendPart(writer.view());
  }

  async #openScan(request: ScanRequest, served: ServedSeries, slice: TimeSlice): Promise<void> {
    const scan = await this.#finish(served.store.scan(request), slice);
    try {
      this.#expectWanted();
      await this.#sendSeries(scan, request.totals ?? [], slice);
    } catch (error) {
      scan.close();
      throw error;
    }
    if (this.#isCancelled) {
      scan.close();
      return;
    }
    this.#scan = new ServedScan({
      scan,
      tenant: served.tenant,
      admission: this.#link.host.options.admission,
      link: this.#link,
      stream: this.#stream,
    });
    this.#done(served, (writer) => {
      writer.varint(scan.fieldTypes.length);
      for (const type of scan.fieldTypes) writeFieldType(writer, type);
      writer.u8(scan.seriesCount === undefined ? 0 : 1);
      writer.varint(scan.seriesCount ?? 0);
    });
  }

  async #sendSeries(scan: SeriesScan, tags: readonly string[], slice: TimeSlice): Promise<void> {
    const hasGroups = scan.seriesCount !== undefined;
    await this.#sendItems(scan.series, slice, hasGroups ? 1 : 0, (writer, series) => {
      if (!hasGroups) writer.string(series.key);
      else {
        writeStrings(
          writer,
          tags.map((tag) => series.tag(tag)),
        );
      }
    });
  }

  async #follow(group: number): Promise<void> {
    const { host } = this.#link;
    const catalog = (): ServedSeries['store'] | undefined => host.options.storeOf(group)?.store;
    await new Promise<void>((resolve, reject) => {
      this.#followed = resolve;
      const send = (part: Buffer): Promise<void> => this.#sendPart(part);
      this.#follower = new CatalogFollower({ group, catalog, send, failed: reject });
      this.#link.follow(this.#follower);
      void this.#follower.tell(true);
    });
  }

  /** Runs slices, with pauses between them. */
  async #finish<T>(slices: Slices<T>, slice: TimeSlice): Promise<T> {
    try {
      for (;;) {
        const step = slices.next();
        if (step.done === true) return step.value;
        if (step.value !== undefined) await slice.awaiting(step.value);
        this.#expectWanted();
        if (slice.isOver) await slice.yield();
      }
    } finally {
      slices.return(undefined as never);
    }
  }

  #done({ store }: ServedSeries, write?: (writer: WireWriter) => void): void {
    if (this.#isCancelled) return;
    this.#link.send(SeriesFrame.answer, this.#stream, (writer) => {
      writer.u8(Ending.done);
      writer.varint(store.appliedIndex ?? 0);
      write?.(writer);
    });
  }

  // ---- parts, as the gateway takes them

  async #sendPart(part: Buffer): Promise<void> {
    while (this.#credit <= 0 && !this.#isCancelled) {
      await new Promise<void>((resolve) => this.#creditWaits.push(resolve));
    }
    while (this.#link.isFull && !this.#isCancelled) await this.#link.whenFree();
    if (this.#isCancelled) throw new Cancelled();
    this.#credit -= part.length;
    this.#link.sendPayload(SeriesFrame.answerPart, this.#stream, part);
  }

  addCredit(bytes: number): void {
    this.#credit += bytes;
    if (this.#credit > 0) this.#wake();
  }

  #wake(): void {
    for (const resolve of this.#creditWaits.splice(0)) resolve();
  }

  read(reader: WireReader): void {
    if (this.#scan === undefined) throw new WireError('there is no scan to read');
    this.#scan.read(reader);
  }

  /** The gateway wants no more of it, or is gone. */
  cancel(): void {
    if (this.#isCancelled) return;
    this.#isCancelled = true;
    this.#wake();
    this.#followed?.();
    if (this.#scan !== undefined) this.#end();
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#scan?.close();
    if (this.#follower !== undefined) this.#link.unfollow(this.#follower);
    this.#link.over(this.#stream);
  }
}

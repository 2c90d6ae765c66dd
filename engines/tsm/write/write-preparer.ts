// Encodes a batch of points: splits it by shard, finds the numbers of its series and fields, and
// drops points that cannot be stored. Nearly always all points of a group are in one shard and all
// can be stored: then rows are processed one by one only for the encoding.

import { assert } from '../../../universal-row/assert.ts';
import type { RecordBatchWriter } from '../../../universal-row/record-batch.ts';
import type { FieldType } from '../../../universal-row/series/field-type.ts';
import type {
  PointBatch,
  PointColumn,
  PointGroup,
} from '../../../universal-row/series/point-batch.ts';
import { SeriesError, type WriteOutcome } from '../../../contracts/series-store.ts';
import type {
  PointRules,
  SeriesAllowance,
  SeriesLimits,
  SeriesSibling,
} from '../../series-engine.ts';
import { type Catalog, inForce, type PolicyState, type ShardSpan, spanFor } from '../catalog.ts';
import type { LiveShard } from '../live-shard.ts';
import { Scratch } from '../ops/scratch.ts';
import { GroupEncoder, hasValues, type SelectedRows } from './group-encoder.ts';
import { HandleNumbersByShard } from './handle-numbers.ts';
import { largerPoints } from './point-size.ts';
import { type DatabaseShare, SeriesLimit } from './series-limit.ts';
import { SeriesResolver } from './series-resolver.ts';
import { ShardDraft } from './shard-draft.ts';

/** The parts of the engine that the preparer uses. */
interface WriteContext {
  catalog(): Catalog;
  limits(): SeriesLimits;
  allowance(database: string): SeriesAllowance | undefined;
  liveShard(number: number): LiveShard | undefined;
  /** Most shards of a database. */
  readonly maxShards: number;
  /** Most shards of all databases of a tenant together. */
  readonly maxTenantShards: number;
  databasesOfTenant(database: string): Iterable<string>;
  /** Other engines that have series of the same databases, by a hash of their keys. */
  siblings(): readonly SeriesSibling[];
}

const refused = 0xffff_ffff;
/** Most new shards of one batch. They are made in one step, and each costs some files. */
const maxNewShards = 256;
const nothing: readonly number[] = [];
const noRules: PointRules = { retention: 0n, maxPointBytes: Infinity };

export class WritePreparer {
  readonly #context: WriteContext;
  readonly #handles = new HandleNumbersByShard();
  readonly #scratch = new Scratch();
  #drafts: ShardDraft[] = [];
  #draft: ShardDraft | undefined = undefined;
  /** Shards that the batch makes. */
  #newShards = 0;
  /** Shards that the tenant may still make; undefined until the batch needs one. */
  #tenantShardsLeft: number | undefined;
  /** Why it may make no more. */
  #shardRefusal = '';
  // Current batch.
  #batch!: PointBatch;
  #database = '';
  #policyName = '';
  #policy!: PolicyState;
  #encoder!: GroupEncoder;
  #outcome!: WriteOutcome;
  #databaseSeries = 0;
  #maxPointBytes = Infinity;
  /** Series left to the database under a shared limit; undefined when it shares none. */
  #share: DatabaseShare | undefined;

  constructor(context: WriteContext) {
    this.#context = context;
  }

  prepare(
    database: string,
    policyName: string,
    batch: PointBatch,
    now: number,
    into: RecordBatchWriter,
    rules: PointRules = noRules,
  ): WriteOutcome {
    const isFirst = this.#drafts.length === 0;
    assert(
      isFirst || this.joins(database, policyName, batch),
      'the batch before has been applied or discarded',
    );
    assert(batch.cache.generation === batch.generation, 'the handles of the batch are valid');
    const catalog = this.#context.catalog();
    if (catalog.state(database) === undefined) {
      // The name is quoted only in this message, as InfluxDB does.
      throw new SeriesError(`database not found: "${database}"`);
    }
    this.#policy = inForce(catalog.expectPolicy(database, policyName), rules.retention);
    this.#maxPointBytes = rules.maxPointBytes;
    this.#batch = batch;
    this.#database = database;
    this.#policyName = policyName;
    this.#encoder = new GroupEncoder(batch, this.#scratch, into);
    const start = into.pos;
    this.#outcome = { written: 0, dropped: 0, error: undefined };
    this.#draft = undefined;
    if (isFirst) this.#newShards = 0;
    this.#tenantShardsLeft = undefined;
    const allowance = this.#context.allowance(database);
    this.#databaseSeries =
      allowance === undefined && this.#context.limits().seriesPerDatabase === Infinity
        ? 0
        : this.#countSeries(database);
    this.#share = allowance && this.#shareOf(allowance);
    if (!isFirst) this.#goOn(batch);
    const oldest = oldestTime(this.#policy, now, batch.baseSeconds);
    for (const group of batch.groups) {
      if (group.rows === 0) continue;
      this.#scratch.clear();
      this.#prepareGroup(database, group, oldest);
    }
    // Without ops there is nothing to apply or discard.
    if (isFirst && into.pos === start) this.#drafts.length = 0;
    return this.#outcome;
  }

  /**
   * Whether a batch can be prepared before the previously prepared batches are applied, as a part of their entry.
   * Until then new series are known by their handles, and new tag values are not counted.
   */
  joins(database: string, policyName: string, { cache, generation }: PointBatch): boolean {
    if (this.#drafts.length === 0) return true;
    return (
      this.#database === database &&
      this.#policyName === policyName &&
      this.#batch.cache === cache &&
      this.#batch.generation === generation &&
      this.#context.limits().valuesPerTag === Infinity
    );
  }

  /** Continues after the previous batches' pending changes. */
  #goOn({ cache, baseSeconds }: PointBatch): void {
    for (const draft of this.#drafts) {
      this.#handles.of(draft.span.number, cache, draft.handles);
      draft.begin(baseSeconds);
      this.#databaseSeries += draft.newHandles.length;
    }
  }

  /** The ops were applied. */
  settle(): void {
    this.#drafts.length = 0;
  }

  /** They are not going to be. */
  discard(): void {
    for (const { handles, newHandles } of this.#drafts) {
      for (const handle of newHandles) handles.numbers[handle] = 0;
    }
    this.#drafts.length = 0;
  }

  /** Series of the shard were removed, or the shard itself. */
  forget(shard: number): void {
    this.#handles.forget(shard);
  }

  forgetAll(): void {
    this.#drafts.length = 0;
    this.#handles.clear();
  }

  #countSeries(database: string): number {
    let series = this.seriesCountOf(database);
    for (const sibling of this.#context.siblings()) series += sibling.seriesCountOf(database);
    return series;
  }

  /** In all shards of the database here. */
  seriesCountOf(database: string): number {
    let series = 0;
    for (const { shards } of this.#context.catalog().state(database)?.policies ?? []) {
      for (const { number } of shards) series += this.#context.liveShard(number)?.series ?? 0;
    }
    return series;
  }

  shardCountOf(database: string): number {
    const policies = this.#context.catalog().state(database)?.policies ?? [];
    return policies.reduce((sum, { shards }) => sum + shards.length, 0);
  }

  /** A tenant may have very many databases: they are counted once a batch. */
  #tenantMayMakeShard(database: string): boolean {
    this.#tenantShardsLeft ??= this.#countTenantShardsLeft(database);
    return this.#tenantShardsLeft-- > 0;
  }

  #countTenantShardsLeft(database: string): number {
    let left = this.#context.maxTenantShards - this.#newShards;
    const siblings = this.#context.siblings();
    for (const one of this.#context.databasesOfTenant(database)) {
      left -= this.shardCountOf(one);
      for (const sibling of siblings) left -= sibling.shardCountOf(one);
    }
    return left;
  }

  #shareOf({ databases, series, refusal }: SeriesAllowance): DatabaseShare {
    let left = series;
    for (const database of databases) left -= this.#countSeries(database);
    return { series: this.#databaseSeries + left, refusal };
  }

  #drop(points: number, error: string): void {
    if (points === 0) return;
    this.#outcome.dropped += points;
    this.#outcome.error ??= error;
  }

  // ---- which shard

  #prepareGroup(database: string, group: PointGroup, oldest: number): void {
    const limit = this.#maxPointBytes;
    if (limit !== Infinity) {
      const larger = largerPoints(this.#batch, group, limit);
      if (larger !== undefined) {
        this.#split(database, group, oldest, larger);
        return;
      }
    }
    const { times, rows } = group;
    let min = Infinity;
    let max = -Infinity;
    for (let i = 0; i < rows; i++) {
      const time = times[i]!;
      if (time < min) min = time;
      if (time > max) max = time;
    }
    if (min >= oldest) {
      const draft = this.#draftAt(database, min);
      if (draft !== undefined && max <= draft.last) {
        this.#prepareRows(draft, group, { count: rows, selected: undefined });
        return;
      }
    }
    this.#split(database, group, oldest);
  }

  /** `larger` has 1 for each point that is too large. */
  #split(database: string, group: PointGroup, oldest: number, larger?: Uint8Array): void {
    const { times, rows } = group;
    const drafts: ShardDraft[] = [];
    const counts: number[] = [];
    const places = new Map<ShardDraft, number>();
    const placeOf = this.#scratch.u32(rows);
    let old = 0;
    let large = 0;
    let homeless = 0;
    let draft: ShardDraft | undefined;
    let place = 0;
    for (let i = 0; i < rows; i++) {
      const time = times[i]!;
      if (larger !== undefined && larger[i] === 1) {
        placeOf[i] = refused;
        large++;
        continue;
      }
      if (time < oldest) {
        placeOf[i] = refused;
        old++;
        continue;
      }
      if (draft === undefined || time < draft.first || time > draft.last) {
        draft = this.#draftAt(database, time);
        if (draft === undefined) {
          placeOf[i] = refused;
          homeless++;
          continue;
        }
        place = places.get(draft) ?? drafts.length;
        if (place === drafts.length) {
          places.set(draft, place);
          drafts.push(draft);
          counts.push(0);
        }
      }
      placeOf[i] = place;
      counts[place]!++;
    }
    this.#drop(large, `point larger than ${this.#maxPointBytes} bytes`);
    this.#drop(old, 'points beyond retention policy');
    this.#drop(homeless, this.#shardRefusal);
    const lists = counts.map((count) => this.#scratch.u32(count));
    counts.fill(0);
    for (let i = 0; i < rows; i++) {
      const at = placeOf[i]!;
      if (at !== refused) lists[at]![counts[at]!++] = i;
    }
    for (const [i, to] of drafts.entries()) {
      this.#prepareRows(to, group, { count: counts[i]!, selected: lists[i] });
    }
  }

  /** The draft of the shard that has the time, which may be a new one; undefined when there are too many. */
  #draftAt(database: string, time: number): ShardDraft | undefined {
    const last = this.#draft;
    if (last !== undefined && time >= last.first && time <= last.last) return last;
    const second = this.#batch.baseSeconds + wholeSeconds(time);
    // The drafts of a batch are ascending in time, so that many of them cost no more than a search.
    const at = placeOf(this.#drafts, ({ first }) => first <= time);
    let draft = this.#drafts[at - 1];
    if (draft === undefined || time > draft.last) {
      const span = this.#spanAt(database, second);
      if (span === undefined) return undefined;
      draft = this.#draftOf(span);
      this.#drafts.splice(at, 0, draft);
    }
    this.#draft = draft;
    return draft;
  }

  #spanAt(database: string, second: number): ShardSpan | undefined {
    const { shards } = this.#policy;
    const at = placeOf(shards, ({ startSeconds }) => startSeconds <= second);
    const before = shards[at - 1];
    if (before !== undefined && second < before.startSeconds + before.seconds) return before;
    if (this.#newShards === maxNewShards) {
      this.#shardRefusal = `more than ${maxNewShards} new shards in one batch`;
      return undefined;
    }
    const { maxShards } = this.#context;
    if (this.shardCountOf(database) + this.#newShards >= maxShards) {
      this.#shardRefusal = `max-shards-per-database limit exceeded: (${maxShards})`;
      return undefined;
    }
    if (!this.#tenantMayMakeShard(database)) {
      this.#shardRefusal = `max-shards-per-tenant limit exceeded: (${this.#context.maxTenantShards})`;
      return undefined;
    }
    const made = placeOf(this.#drafts, ({ span }) => span.startSeconds <= second);
    // Only its neighbours can overlap the range that the policy would give it.
    const neighbours = [before, shards[at], this.#drafts[made - 1]?.span, this.#drafts[made]?.span];
    return {
      number: this.#context.catalog().nextShard + this.#newShards++,
      database,
      policy: this.#policy.name,
      ...spanFor(
        this.#policy,
        neighbours.filter((span) => span !== undefined),
        second,
      ),
    };
  }

  #draftOf(span: ShardSpan): ShardDraft {
    const index = this.#context.liveShard(span.number)?.shard.index;
    const handles = this.#handles.of(span.number, this.#batch.cache);
    return new ShardDraft(span, index, handles, this.#batch.baseSeconds);
  }

  // ---- points that can be stored
  //

  #prepareRows(draft: ShardDraft, group: PointGroup, rows: SelectedRows): void {
    const known = draft.findMeasurement(group.measurement);
    if (!this.#checkFields(draft, group, known, rows)) return;
    const series = this.#scratch.u32(rows.count);
    const added = this.#resolve(draft, group, known, rows, series);
    if (rows.count === 0) return;
    const measurement = known >= 0 ? known : draft.addMeasurement(group.measurement);
    draft.countNewSeries(measurement, added.length);
    this.#databaseSeries += added.length;
    const isNew = known < 0;
    this.#encoder.put(draft, group, measurement, isNew, added, rows, series);
    this.#outcome.written += rows.count;
  }

  /** Leaves out rows with a field of another type than it has. False when none is left. */
  #checkFields(
    draft: ShardDraft,
    group: PointGroup,
    measurement: number,
    rows: SelectedRows,
  ): boolean {
    let seen: Map<string, FieldType> | undefined;
    for (const column of group.columns) {
      const { field, type } = column;
      const known = draft.findField(measurement, field)?.type ?? seen?.get(field);
      if (known === type) continue;
      if (known === undefined) {
        if (hasValues(column, rows)) (seen ??= new Map()).set(field, type);
        continue;
      }
      const before = rows.count;
      this.#leaveOut(column, rows);
      const what = `input field "${field}" on measurement "${group.measurement}"`;
      this.#drop(
        before - rows.count,
        `field type conflict: ${what} is type ${type}, already exists as type ${known}`,
      );
      if (rows.count === 0) return false;
    }
    return true;
  }

  /** Leaves out the rows that have the column. */
  #leaveOut(column: PointColumn, rows: SelectedRows): void {
    const { present } = column;
    const { selected, count } = rows;
    if (column.count === 0) return;
    const left = this.#scratch.u32(count);
    let kept = 0;
    if (present !== undefined) {
      for (let i = 0; i < count; i++) {
        const row = selected === undefined ? i : selected[i]!;
        if (present[row] !== 1) left[kept++] = row;
      }
    }
    if (kept === count) return;
    rows.count = kept;
    rows.selected = left;
  }

  /**
   * The number of each row's series. Returns the handles of those that are new; leaves out the rows of
   * those that are too many.
   */
  #resolve(
    draft: ShardDraft,
    group: PointGroup,
    measurement: number,
    rows: SelectedRows,
    series: Uint32Array,
  ): readonly number[] {
    const { numbers } = draft.handles;
    const { selected, count } = rows;
    const handles = group.series;
    let resolver: SeriesResolver | undefined;
    let refusals = 0;
    for (let i = 0; i < count; i++) {
      const handle = handles[selected === undefined ? i : selected[i]!]!;
      let number = numbers[handle]!;
      if (number === 0) {
        resolver ??= this.#resolver(draft, measurement);
        number = resolver.find(handle);
        if (number === 0) refusals++;
      }
      // A refused one becomes `refused`.
      series[i] = number - 1;
    }
    if (refusals > 0) this.#leaveOutRefused(rows, series, refusals, resolver!.refusal!);
    return resolver?.added ?? nothing;
  }

  #resolver(draft: ShardDraft, measurement: number): SeriesResolver {
    const { cache } = this.#batch;
    const added: number[] = [];
    const limits = this.#context.limits();
    const limit = new SeriesLimit(limits, draft, cache, measurement, this.#databaseSeries, added);
    limit.share = this.#share;
    return new SeriesResolver(draft, cache, limit, added);
  }

  #leaveOutRefused(rows: SelectedRows, series: Uint32Array, refusals: number, error: string): void {
    const { selected, count } = rows;
    const left = this.#scratch.u32(count);
    let kept = 0;
    for (let i = 0; i < count; i++) {
      if (series[i] === refused) continue;
      series[kept] = series[i]!;
      left[kept++] = selected === undefined ? i : selected[i]!;
    }
    rows.count = kept;
    rows.selected = left;
    this.#drop(refusals, error);
  }
}

/** How many of an ascending list `isBefore` holds for: for those at its beginning. */
function placeOf<T>(list: readonly T[], isBefore: (one: T) => boolean): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isBefore(list[middle]!)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Relative to the base: points before it are not kept. */
function oldestTime(policy: PolicyState, now: number, baseSeconds: number): number {
  if (policy.duration === 0n) return -Infinity;
  const oldest = BigInt(Math.floor(now)) * 1_000_000n - policy.duration;
  return Number(oldest - BigInt(baseSeconds) * 1_000_000_000n);
}

/** The whole seconds of a number of nanoseconds, downwards. A quotient that is near a whole number may be rounded up to it. */
function wholeSeconds(time: number): number {
  const seconds = Math.floor(time / 1e9);
  return seconds * 1e9 > time ? seconds - 1 : seconds;
}

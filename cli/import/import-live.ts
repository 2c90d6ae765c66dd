// `polyrow import --from redis://…`: moves a Redis under write load. The import acts as its replica: it loads the snapshot,
// then applies commands as they arrive, until the clients use the new server.

import { setTimeout as sleep } from 'node:timers/promises';
import { ExitError } from '../../server/lifecycle/exit-error.ts';
import { SourceEnded } from './byte-source.ts';
import { readCommand } from './command-stream.ts';
import type { ImportView } from './import-view.ts';
import { LiveApply } from './live-apply.ts';
import { RdbReader } from './rdb-reader.ts';
import { ReplicaLink, ReplicationRefused, type StreamPlace } from './replica-link.ts';
import { type Endpoint, nameOf, RedisError, RespLink } from './resp-link.ts';
import type { Target } from './target.ts';

/** A place in the source's stream, and the database that it is about there. */
interface AppliedPlace extends StreamPlace {
  sourceDb: number;
}

export interface LiveProgress {
  /** The databases that are written to had no key when it began. */
  startedEmpty: boolean;
  /** Where the snapshot ended; absent while it is loaded. */
  loaded?: AppliedPlace;
  marker: string;
}

/** Where progress is kept. */
interface Progresses {
  save(progress: LiveProgress): void;
  remove(): void;
}

const tickMs = 1000;
const retryMs = 1000;

export class LiveImport {
  readonly #from: Endpoint;
  readonly #target: Target;
  readonly #view: ImportView;
  readonly #state: Progresses;
  readonly #progress: LiveProgress;
  readonly #skipsFunctions: boolean;
  readonly #isResumed: boolean;
  /** Clients use the new server, or will soon: the import ends when it has caught up with the source. */
  isEnding = false;
  #apply: LiveApply | undefined;
  #replica: ReplicaLink | undefined;
  #watch: RespLink | undefined;
  /** Last reported offset of the source's stream. */
  #sourceOffset = NaN;
  /** Source offset reported after the end was requested: the import ends once everything up to it is applied. */
  #endOffset = NaN;
  #isDone = false;

  constructor(
    from: Endpoint,
    target: Target,
    view: ImportView,
    state: Progresses,
    progress: LiveProgress,
    { skipsFunctions, isResumed }: { skipsFunctions: boolean; isResumed: boolean },
  ) {
    this.#from = from;
    this.#target = target;
    this.#view = view;
    this.#state = state;
    this.#progress = progress;
    this.#skipsFunctions = skipsFunctions;
    this.#isResumed = isResumed;
  }

  /** Resolves when the move is over. Throws `ReplicationRefused` when it cannot begin as a replica. */
  async run(): Promise<void> {
    await this.#target.fence(this.#progress.marker);
    let place = await this.#placeOfTarget();
    let isAgain = this.#isResumed;
    for (;;) {
      try {
        await this.#follow(place, isAgain);
        return;
      } catch (error) {
        if (error instanceof SourceEnded && this.#progress.loaded === undefined) {
          throw new ExitError(`${error.message} before its snapshot was there: run this again`);
        }
        if (this.#progress.loaded === undefined || isFinal(error)) throw error;
        this.#view.note(`${(error as Error).message}; trying again`);
        // A batch that was cut off is taken again from where the target is.
        await sleep(retryMs);
        isAgain = true;
        place = await this.#placeOfTarget();
      } finally {
        this.#replica?.close();
        this.#watch?.close();
      }
    }
  }

  /** The position recorded in the target. */
  async #placeOfTarget(): Promise<AppliedPlace | undefined> {
    const { loaded, marker } = this.#progress;
    if (loaded === undefined) return undefined;
    let { offset, sourceDb } = loaded;
    for (const db of await this.#targetDatabases()) {
      await this.#target.select(db);
      const [noted = 0, about = 0] = String((await this.#target.call('GET', marker)) ?? '')
        .split(' ')
        .map(Number);
      if (noted <= offset) continue;
      offset = noted;
      sourceDb = about;
    }
    return { replication: loaded.replication, offset, sourceDb };
  }

  async #targetDatabases(): Promise<number[]> {
    const { targets } = this.#target.databases;
    if (targets !== undefined) return targets;
    const keyspace = String(await this.#target.call('INFO', 'keyspace'));
    return [...keyspace.matchAll(/^db(\d+):/gm)].map(([, db]) => Number(db));
  }

  async #follow(place: AppliedPlace | undefined, isAgain: boolean): Promise<void> {
    const replica = await ReplicaLink.open(this.#from, place);
    this.#replica = replica;
    let sourceDb = place?.sourceDb ?? 0;
    if (replica.isFull) sourceDb = await this.#load(replica, isAgain);
    else if (place !== undefined) this.#noteReplication(replica.place.replication);
    const { offset } = replica.place;
    const apply = new LiveApply(this.#target, this.#progress.marker, offset, sourceDb);
    this.#apply = apply;
    const timer = setInterval(() => void this.#tick(), tickMs);
    try {
      await this.#tick();
      await this.#applyAll(replica, apply);
    } finally {
      clearInterval(timer);
    }
    await this.#finish();
  }

  /** A source that became a master of its own continues under another name. */
  #noteReplication(replication: string): void {
    const { loaded } = this.#progress;
    if (loaded === undefined || loaded.replication === replication) return;
    loaded.replication = replication;
    this.#state.save(this.#progress);
  }

  /** Loads the snapshot; the database that the stream begins in. */
  async #load(replica: ReplicaLink, isAgain: boolean): Promise<number> {
    const progress = this.#progress;
    if (isAgain && progress.startedEmpty) {
      this.#view.note('loading all of it anew');
      await this.#empty();
    } else if (progress.loaded !== undefined) {
      throw new ExitError(
        'the source does not have the commands any more that are missing, and the target had keys of its own when this began: empty it, remove the state file, and begin anew',
      );
    }
    delete progress.loaded;
    this.#state.save(progress);
    const alive = setInterval(() => replica.stayAlive(), tickMs);
    try {
      const { bytes, mark } = await replica.snapshot();
      const start = replica.source.position;
      const reader = await RdbReader.begin(replica.source);
      for (;;) {
        const item = await reader.next();
        if (item.kind === 'end') break;
        if (item.kind === 'value') await this.#target.put(item);
        else if (item.kind === 'module') this.#target.tally.modules++;
        else if (!this.#skipsFunctions) await this.#target.loadFunction(item.code);
        const read = replica.source.position - start;
        this.#view.loading(read / bytes, read, this.#target.tally.keys);
      }
      await this.#target.link.drained();
      await replica.source.need(mark.length);
      replica.source.take(mark.length);
    } finally {
      clearInterval(alive);
    }
    replica.acknowledge(replica.place.offset);
    progress.loaded = { ...replica.place, sourceDb: 0 };
    this.#state.save(progress);
    this.#view.loaded();
    this.#view.note(
      `${this.#target.tally.keys} keys are copied; writes to ${nameOf(this.#from)} follow. Move clients over when the lag is small, then end with Ctrl-C.`,
    );
    return 0;
  }

  async #empty(): Promise<void> {
    const { targets } = this.#target.databases;
    if (targets === undefined) await this.#target.call('FLUSHALL');
    for (const db of targets ?? []) {
      await this.#target.select(db);
      await this.#target.call('FLUSHDB');
    }
    Object.assign(this.#target.tally, { keys: 0, expired: 0 });
  }

  async #applyAll(replica: ReplicaLink, apply: LiveApply): Promise<void> {
    const { source } = replica;
    while (!this.#isDone) {
      const command = readCommand(source);
      if (command !== undefined) {
        await apply.take(command);
        continue;
      }
      await apply.flush();
      if (this.#isOver(apply)) return;
      const hasMore = await source.more().catch(() => false);
      if (!hasMore && !this.#isDone) throw new Error(`${nameOf(this.#from)} ended the connection`);
    }
  }

  #isOver(apply: LiveApply): boolean {
    return apply.applied >= this.#endOffset;
  }

  /** Asks the source how far it is, tells it how far we are, and shows both. */
  async #tick(): Promise<void> {
    const apply = this.#apply!;
    const { isEnding } = this;
    try {
      this.#watch ??= await RespLink.open(this.#from);
      const info = String(await this.#watch.call('INFO', 'replication'));
      this.#sourceOffset = Number(/^master_repl_offset:(\d+)/m.exec(info)?.[1] ?? NaN);
    } catch {
      this.#watch = undefined;
      this.#sourceOffset = NaN;
    }
    if (isEnding) this.#endOffset = this.#sourceOffset;
    this.#replica?.acknowledge(apply.applied);
    const lagBytes = Math.max(0, this.#sourceOffset - apply.applied) || 0;
    this.#view.live({ appliedBytes: apply.applied, commands: apply.commands, lagBytes });
    // The stream may be quiet: then nothing else wakes the reader up.
    if (!this.#isOver(apply)) return;
    this.#isDone = true;
    this.#replica?.close();
  }

  /** The source has nothing more: the marks of how far it was go. */
  async #finish(): Promise<void> {
    for (const db of await this.#targetDatabases()) {
      await this.#target.select(db);
      await this.#target.call('DEL', this.#progress.marker);
    }
    this.#state.remove();
  }
}

/** Whether to try again would not help. */
function isFinal(error: unknown): boolean {
  if (error instanceof ExitError) return !error.message.includes('connection');
  const isRefusal = error instanceof ReplicationRefused || error instanceof RedisError;
  return isRefusal && !/LOADING|NOMASTERLINK|BUSY|MASTERDOWN/.test(error.message);
}

// Copies one partition of a group that is led here to the partitions that replace it, in groups that may be led
// elsewhere, while clients continue. The partition is frozen only for its last rows.

import { MarkState, type PartitionQuestion } from '../../contracts/partition-map.ts';
import type { TableDefinition } from '../../control/metadata/table-definition.ts';
import { type CopySink, PartitionCopy } from '../../storage-node/partition-copy.ts';
import { setMark } from '../../storage-node/mark-partitions.ts';
import type { Pod } from '../../storage-node/pod.ts';

interface MoverOptions {
  readonly pod: Pod;
  readonly source: number;
  readonly definition: TableDefinition;
  /** Asks the leader of the group that has the partition. */
  readonly ask: (number: number, question: PartitionQuestion) => Promise<unknown>;
}

export interface MoverStatus {
  readonly attempt: number;
  readonly state: 'copying' | 'ready' | 'shipped' | 'failed';
  readonly done: number;
  readonly total: number;
  readonly error?: string | undefined;
}

const followEveryMs = 10;

/** A long command has begun in between. */
class NotFree extends Error {}

export class PartitionMover {
  readonly attempt: number;
  readonly #options: MoverOptions;
  readonly #copy: PartitionCopy;
  readonly #home: number;
  #state: MoverStatus['state'] = 'copying';
  #error: string | undefined;
  #isFreezing = false;
  #following: Promise<void>;
  #shipped: Promise<void> | undefined;

  constructor(options: MoverOptions) {
    const { pod, source, definition, ask } = options;
    const { change, partitions } = definition.placement!;
    const { sources, targets, attempt } = change!;
    const { first, last } = partitions.find(({ number }) => number === source)!;
    const into = targets.filter((target) => target.first <= last && target.last >= first);
    this.#options = options;
    this.attempt = attempt!;
    this.#home = sources[0]!;
    this.#copy = new PartitionCopy({
      sources: [{ pod, table: source }],
      targets: into.map((target) => ({
        sink: new GroupSink({ target: target.number, source, attempt: this.attempt, ask }),
        table: target.number,
        first: target.first,
        last: target.last,
      })),
      isMerge: into.some((target) => target.first < first || target.last > last),
    });
    this.#following = this.#follow();
    this.#following.catch((error: unknown) => this.#fail(error));
  }

  /** Of the source. */
  get pod(): Pod {
    return this.#options.pod;
  }

  get status(): MoverStatus {
    const { done, total } = this.#copy;
    return { attempt: this.attempt, state: this.#state, done, total, error: this.#error };
  }

  async #follow(): Promise<void> {
    const { pod, source } = this.#options;
    await this.#copy.copy();
    this.#state = 'ready';
    while (!this.#isFreezing) {
      await new Promise((resolve) => setTimeout(resolve, followEveryMs));
      if (pod.role !== 'leader') throw new Error(`partition ${source} has another leader`);
      await this.#copy.followUp();
    }
  }

  #fail(error: unknown): void {
    this.#state = 'failed';
    this.#error = (error instanceof Error ? error.message : String(error)) || 'cancelled';
    this.#copy.release();
  }

  /** Resolves when the source takes no commands any more and all of its rows are durable in the targets. */
  freeze(): Promise<void> {
    this.#shipped ??= this.#freeze().catch((error: unknown) => {
      this.#fail(error);
      throw error;
    });
    return this.#shipped;
  }

  async #freeze(): Promise<void> {
    const { pod, source } = this.#options;
    if (this.#state !== 'ready') throw new Error(`partition ${source} is not copied yet`);
    this.#isFreezing = true;
    await this.#following;
    const mark = { state: MarkState.frozen, attempt: this.attempt, home: this.#home };
    for (;;) {
      await pod.freed(source);
      try {
        await setMark(pod, source, mark, (old) => {
          if (!pod.isFree(source)) throw new NotFree();
          if (
            old !== undefined &&
            (old.state === MarkState.closed || old.attempt >= this.attempt)
          ) {
            throw new Error(`attempt ${this.attempt} is void`);
          }
          return true;
        });
        break;
      } catch (error) {
        if (!(error instanceof NotFree)) throw error;
      }
    }
    await this.#copy.finish();
    // The log of the source is needed no more.
    this.#copy.release();
    this.#state = 'shipped';
  }

  async close(): Promise<void> {
    this.#isFreezing = true;
    this.#copy.cancel();
    await this.#following.catch(() => undefined);
    await this.#shipped?.catch(() => undefined);
    this.#copy.release();
  }
}

interface GroupSinkOptions {
  readonly target: number;
  readonly source: number;
  readonly attempt: number;
  readonly ask: MoverOptions['ask'];
}

/** A target, wherever its group is led. */
class GroupSink implements CopySink {
  readonly #options: GroupSinkOptions;
  #slices = 0;

  constructor(options: GroupSinkOptions) {
    this.#options = options;
  }

  apply(ops: Buffer): Promise<void> {
    return this.#fill({ ops: ops.toString('base64') });
  }

  put(_table: number, key: Buffer, ops: Buffer): Promise<void> {
    return this.#fill({ key: key.toString('base64'), ops: ops.toString('base64') });
  }

  async #fill(rows: { key?: string; ops: string }): Promise<void> {
    const { target, source, attempt, ask } = this.#options;
    const slices = this.#slices++;
    await ask(target, { kind: 'fill', target, source, attempt, slices, ...rows });
  }

  /** Its leader refuses slices it has no room for. */
  refuseIfFull(): void {}

  async durable(): Promise<void> {
    const { target, source, attempt, ask } = this.#options;
    const slices = this.#slices;
    await ask(target, { kind: 'durable', target, source, attempt, slices });
  }
}

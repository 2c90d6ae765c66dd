// The state of a replica: the proposals applied, and a hash over them in order. Kept in one file, replaced whole.

import { makeDurableDirectory } from '../../../universal-row/durable-names.ts';
import type { Disk } from '../../../universal-row/environment.ts';
import type { ExportedState, StateMachine } from '../raft/state-machine.ts';
import type { Checker } from './checker.ts';

interface State {
  index: number;
  hash: number;
  ids: number[];
}

const file = 'state';
const chunkBytes = 300;

export class SimulatedMachine implements StateMachine {
  durableIndex: number;
  /** The state is durable up to there; for the group. */
  onDurable: (index: number) => void = () => undefined;
  ids: Set<number>;
  index: number;
  #hash: number;
  #saving: Promise<void> = Promise.resolve();
  readonly #disk: Disk;
  readonly #directory: string;
  readonly #replica: number;
  readonly #checker: Checker;
  readonly #fatal: (error: Error) => void;

  constructor(
    disk: Disk,
    directory: string,
    replica: number,
    checker: Checker,
    fatal: (error: Error) => void,
  ) {
    this.#disk = disk;
    this.#directory = directory;
    this.#replica = replica;
    this.#checker = checker;
    this.#fatal = fatal;
    makeDurableDirectory(disk, directory);
    const path = `${directory}/${file}`;
    const found = disk.exists(path) ? this.#load(path) : { index: 0, hash: 0, ids: [] };
    this.durableIndex = found.index;
    this.index = found.index;
    this.#hash = found.hash;
    this.ids = new Set(found.ids);
  }

  apply(index: number, proposals: readonly Uint8Array[]): void {
    if (index !== this.index + 1 && this.index > 0) {
      this.#checker.fail(`${this.#replica} applies ${index} after ${this.index}`);
    }
    const ids = proposals.map((bytes) => Buffer.from(bytes).readUInt32LE());
    for (const id of ids) {
      this.ids.add(id);
      this.#hash = (Math.imul(this.#hash ^ id, 0x01000193) + index) >>> 0;
    }
    this.index = index;
    this.#checker.applied(this.#replica, index, this.#hash, ids);
  }

  exportState(): ExportedState {
    const state = Buffer.from(JSON.stringify({ hash: this.#hash, ids: [...this.ids] }));
    async function* chunks(): AsyncGenerator<Uint8Array> {
      for (let at = 0; at < state.length; at += chunkBytes) {
        yield await Promise.resolve(state.subarray(at, at + chunkBytes));
      }
    }
    return { index: this.index, chunks: chunks() };
  }

  async install({ index, chunks }: ExportedState): Promise<void> {
    const parts: Uint8Array[] = [];
    for await (const chunk of chunks) parts.push(Buffer.from(chunk));
    const text = Buffer.concat(parts).toString();
    const state = JSON.parse(text) as Pick<State, 'hash' | 'ids'>;
    if (index < this.index) this.#checker.fail(`${this.#replica} goes back to ${index}`);
    await this.#save({ ...state, index });
    this.index = index;
    this.durableIndex = index;
    this.#hash = state.hash;
    this.ids = new Set(state.ids);
    this.#checker.applied(this.#replica, index, this.#hash, []);
  }

  checkpoint(): void {
    const { index } = this;
    this.#save({ index, hash: this.#hash, ids: [...this.ids] }).then(
      () => {
        this.durableIndex = Math.max(this.durableIndex, index);
        this.onDurable(index);
      },
      (error: unknown) => this.#fatal(error as Error),
    );
  }

  #load(path: string): State {
    const f = this.#disk.open(path, 'read');
    const b = Buffer.alloc(f.size());
    f.read(b, 0, b.length, 0);
    f.close();
    return JSON.parse(b.toString()) as State;
  }

  /** One after the other. */
  #save(state: State): Promise<void> {
    this.#saving = this.#saving.then(async () => {
      const f = this.#write(state);
      await f.sync();
      f.close();
      this.#rename();
    });
    return this.#saving;
  }

  #write(state: State) {
    const bytes = Buffer.from(JSON.stringify(state));
    const f = this.#disk.open(`${this.#directory}/${file}.new`, 'create');
    f.write(bytes, 0, bytes.length, 0);
    return f;
  }

  #rename(): void {
    this.#disk.rename(`${this.#directory}/${file}.new`, `${this.#directory}/${file}`);
    this.#disk.syncDirectory(this.#directory);
  }
}

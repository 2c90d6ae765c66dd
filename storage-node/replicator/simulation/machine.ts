// The state of a replica: the proposals applied, and a hash over them in order. Kept in one file, replaced whole.

import type { Disk } from '../../../universal-row/environment.ts';
import type { LogPosition, StateMachine } from '../raft/state-machine.ts';
import type { Checker } from './checker.ts';

interface State {
  at: LogPosition;
  hash: number;
  ids: number[];
}

const file = 'state';

export class SimulatedMachine implements StateMachine {
  durable: LogPosition;
  ids: Set<number>;
  index: number;
  #hash: number;
  readonly #disk: Disk;
  readonly #directory: string;
  readonly #replica: number;
  readonly #checker: Checker;
  readonly #fatal: (error: Error) => void;

  /** Opens what is there, or begins with `first`, durably. */
  constructor(
    disk: Disk,
    directory: string,
    replica: number,
    first: LogPosition,
    checker: Checker,
    fatal: (error: Error) => void,
  ) {
    this.#disk = disk;
    this.#directory = directory;
    this.#replica = replica;
    this.#checker = checker;
    this.#fatal = fatal;
    disk.makeDirectory(directory);
    const path = `${directory}/${file}`;
    const found = disk.exists(path) ? this.#load(path) : { at: first, hash: 0, ids: [] };
    this.durable = found.at;
    this.index = found.at.index;
    this.#hash = found.hash;
    this.ids = new Set(found.ids);
    if (!disk.exists(path)) this.#saveNow(found);
  }

  apply(index: number, proposals: readonly Uint8Array[]): void {
    if (index !== this.index + 1) {
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

  exportState(): Uint8Array {
    return Buffer.from(JSON.stringify({ hash: this.#hash, ids: [...this.ids] }));
  }

  install(bytes: Uint8Array, index: number): void {
    const state = JSON.parse(Buffer.from(bytes).toString()) as Pick<State, 'hash' | 'ids'>;
    if (index < this.index) this.#checker.fail(`${this.#replica} goes back to ${index}`);
    this.index = index;
    this.#hash = state.hash;
    this.ids = new Set(state.ids);
    this.#checker.applied(this.#replica, index, this.#hash, []);
  }

  checkpoint(at: LogPosition, done: () => void): void {
    const state: State = { at, hash: this.#hash, ids: [...this.ids] };
    this.#save(state).then(
      () => {
        this.durable = at;
        done();
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

  async #save(state: State): Promise<void> {
    const f = this.#write(state);
    await f.sync();
    f.close();
    this.#rename();
  }

  #saveNow(state: State): void {
    const f = this.#write(state);
    f.syncNow();
    f.close();
    this.#rename();
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

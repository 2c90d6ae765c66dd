// The documents of a replica of the metadata: applies log entries, notifies followers, and makes
// the state durable in the background.

import type { ReplicatedMachine, ReplicatedState } from '../../../contracts/replicated-group.ts';
import type { Outcome } from '../../../universal-row/executor.ts';
import { ChangeHistory } from './change-history.ts';
import type { StoredChange } from './change-history.ts';
import type { DocumentState, StoredText } from './document-state.ts';
import type { LoadedState, StateDelta } from './state-store.ts';
import { StateStore } from './state-store.ts';
import { decodeState, encodeState } from './state-stream.ts';
import { decodeCommand } from './write-command.ts';
import type { WriteResult } from './write-command.ts';

interface DocumentMachineListener {
  /** A command of this replica, by its position, has been applied. */
  applied(position: number, result: WriteResult): void;
  settled(position: number, outcome: Outcome): void;
  leaderChanged(): void;
  changed(changes: readonly StoredChange[]): void;
  /** The state was replaced; the changes between are unknown. */
  replaced(): void;
  /** The state is durable up to this index of the log. */
  durable(index: number): void;
  /** A checkpoint failed; it is tried again. */
  failed(error: Error): void;
}

const retryMs = 5000;

export class DocumentMachine implements ReplicatedMachine {
  state: DocumentState;
  history: ChangeHistory;
  durableIndex: number;
  readonly #store: StateStore;
  readonly #historyLength: number;
  #listener: DocumentMachineListener | undefined;
  #index: number;
  /** Documents that have changed since the last checkpoint, by collection and id. */
  #dirty = new Map<string, { collection: string; id: string }>();
  /** Revision of the last change that a checkpoint has. */
  #savedRevision: number;
  #saving: Promise<void> | undefined;
  #isInstalling = false;
  #isAskedAgain = false;
  #retry: NodeJS.Timeout | undefined;
  #isClosed = false;

  private constructor(store: StateStore, loaded: LoadedState, historyLength: number) {
    this.#store = store;
    this.#historyLength = historyLength;
    this.state = loaded.state;
    this.history = loaded.history;
    this.#index = loaded.index;
    this.durableIndex = loaded.index;
    this.#savedRevision = loaded.state.revision;
  }

  static async open(path: string, historyLength: number): Promise<DocumentMachine> {
    const store = await StateStore.open(path);
    try {
      return new DocumentMachine(store, await store.load(historyLength), historyLength);
    } catch (error) {
      await store.close();
      throw error;
    }
  }

  listen(listener: DocumentMachineListener): void {
    this.#listener = listener;
  }

  apply(index: number, proposals: readonly Uint8Array[], position: number): void {
    this.#index = index;
    for (const [i, bytes] of proposals.entries()) {
      const changes: StoredChange[] = [];
      const command = decodeCommand(bytes);
      const result = this.state.apply(command, (collection, id, revision, text) => {
        changes.push({ revision, collection, id, text, last: this.state.revision });
        this.#dirty.set(`${collection}/${id}`, { collection, id });
      });
      for (const change of changes) this.history.add(change);
      if (changes.length > 0) this.#listener?.changed(changes);
      if (position > 0) this.#listener?.applied(position + i, result);
    }
  }

  settled(position: number, outcome: Outcome): void {
    this.#listener?.settled(position, outcome);
  }

  leaderChanged(): void {
    this.#listener?.leaderChanged();
  }

  exportState(): ReplicatedState {
    const { head } = this.state;
    return { index: this.#index, chunks: encodeState(head, this.state.unordered()) };
  }

  async install({ index, chunks }: ReplicatedState): Promise<void> {
    const state = await decodeState(chunks);
    this.#isInstalling = true;
    try {
      await this.#saving;
      await this.#store.replace(index, state.head, state.unordered());
    } finally {
      this.#isInstalling = false;
    }
    this.state = state;
    this.history = new ChangeHistory(this.#historyLength, state.revision);
    this.#dirty.clear();
    this.#index = index;
    this.durableIndex = index;
    this.#savedRevision = state.revision;
    this.#listener?.replaced();
  }

  checkpoint(): void {
    if (this.#isClosed || this.#isInstalling) return;
    if (this.#saving) {
      this.#isAskedAgain = true;
      return;
    }
    const dirty = this.#dirty;
    this.#dirty = new Map();
    const delta = this.#delta(dirty);
    this.#saving = this.#store.save(delta).then(
      () => this.#saved(delta),
      (error: unknown) => this.#notSaved(dirty, error as Error),
    );
  }

  /** Waits for a checkpoint that is under way. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#retry);
    await this.#saving;
    await this.#store.close();
  }

  #delta(dirty: ReadonlyMap<string, { collection: string; id: string }>): StateDelta {
    const documents = [...dirty.values()].map(({ collection, id }) => {
      const document: StoredText | undefined = this.state.get(collection, id);
      return { collection, id, document };
    });
    const changes = this.history.from(this.#savedRevision + 1);
    const { oldest } = this.history;
    return { index: this.#index, head: this.state.head, documents, changes, oldest };
  }

  #saved({ index, head }: StateDelta): void {
    this.#saving = undefined;
    this.durableIndex = index;
    this.#savedRevision = head.revision;
    this.#listener?.durable(index);
    if (!this.#isAskedAgain) return;
    this.#isAskedAgain = false;
    this.checkpoint();
  }

  #notSaved(dirty: ReadonlyMap<string, { collection: string; id: string }>, error: Error): void {
    this.#saving = undefined;
    for (const [name, document] of dirty) this.#dirty.set(name, document);
    this.#listener?.failed(error);
    if (this.#isClosed) return;
    this.#retry = setTimeout(() => this.checkpoint(), retryMs);
    this.#retry.unref();
  }
}

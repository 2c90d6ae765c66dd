// State of the metadata's log: documents with their revisions, and the outcomes of recent writes,
// so that a write proposed again is not applied twice. Every replica reaches the same state.

import { byBytes } from '../document-checks.ts';
import type { WriteCommand, WriteResult } from './write-command.ts';

export interface StoredText {
  readonly collection: string;
  readonly id: string;
  readonly revision: number;
  /** The body as JSON. */
  readonly text: string;
}

/** An applied command, and its outcome. */
export interface RecentWrite {
  id: string;
  /** Its place among all commands. */
  command: number;
  result: WriteResult;
}

/** State besides documents. */
export interface StateHead {
  /** Revision of the last change, 0 for none. */
  revision: number;
  /** Commands applied. */
  commands: number;
  /** The last of them, the oldest first. */
  recent: RecentWrite[];
}

/**
 * Number of writes remembered for retries: one more than may lie between two attempts of one write. Part of the
 * format, because all replicas must drop the same writes.
 */
const recentLength = 1000;

interface Collection {
  byId: Map<string, StoredText>;
  /** In the order of the ids' bytes; undefined when an id came or went since. */
  sorted: StoredText[] | undefined;
}

export class DocumentState {
  revision: number;
  commands: number;
  readonly #collections = new Map<string, Collection>();
  readonly #recent: RecentWrite[];
  readonly #recentById: Map<string, RecentWrite>;

  constructor(head: StateHead = { revision: 0, commands: 0, recent: [] }) {
    this.revision = head.revision;
    this.commands = head.commands;
    this.#recent = [...head.recent];
    this.#recentById = new Map(head.recent.map((write) => [write.id, write]));
  }

  get head(): StateHead {
    return { revision: this.revision, commands: this.commands, recent: [...this.#recent] };
  }

  get(collection: string, id: string): StoredText | undefined {
    return this.#collections.get(collection)?.byId.get(id);
  }

  /** By id, in the order of their bytes. */
  list(name: string): readonly StoredText[] {
    const collection = this.#collections.get(name);
    if (collection === undefined) return [];
    collection.sorted ??= [...collection.byId.values()].sort((a, b) => byBytes(a.id, b.id));
    return collection.sorted;
  }

  /** By collection and id. */
  all(): StoredText[] {
    const names = [...this.#collections.keys()].sort(byBytes);
    return names.flatMap((name) => this.list(name));
  }

  /** In no order. */
  unordered(): StoredText[] {
    return [...this.#collections.values()].flatMap(({ byId }) => [...byId.values()]);
  }

  /** Without a write: a document of a state that is being loaded. */
  put(document: StoredText): void {
    let collection = this.#collections.get(document.collection);
    if (collection === undefined) {
      collection = { byId: new Map(), sorted: undefined };
      this.#collections.set(document.collection, collection);
    }
    collection.byId.set(document.id, document);
    collection.sorted = undefined;
  }

  /** `changed` is notified of each change, in order, when all are made. */
  apply(
    command: WriteCommand,
    changed: (collection: string, id: string, revision: number, text: string | undefined) => void,
  ): WriteResult {
    this.commands++;
    const before = this.#recentById.get(command.id);
    if (before) return before.result;
    // The result of an earlier attempt may have been dropped.
    const forgotten = (this.#recent[0]?.command ?? this.commands) - 1;
    if (forgotten > command.since) return { kind: 'forgotten', commands: this.commands };
    const result = this.#conflict(command) ?? this.#make(command);
    this.#remember({ id: command.id, command: this.commands, result });
    if (result.kind === 'written') {
      command.writes.forEach(({ collection, id, text }, i) =>
        changed(collection, id, result.first + i, text),
      );
    }
    return result;
  }

  #conflict({ writes }: WriteCommand): WriteResult | undefined {
    for (const { collection, id, expected } of writes) {
      const found = this.get(collection, id)?.revision ?? 0;
      if (found !== expected) return { kind: 'conflict', collection, id, expected, found };
    }
    return undefined;
  }

  #make({ writes }: WriteCommand): WriteResult {
    const first = this.revision + 1;
    for (const { collection, id, text } of writes) {
      const revision = ++this.revision;
      if (text !== undefined) this.put({ collection, id, revision, text });
      else this.#remove(collection, id);
    }
    return { kind: 'written', first, count: writes.length };
  }

  #remove(name: string, id: string): void {
    const collection = this.#collections.get(name);
    if (collection === undefined || !collection.byId.delete(id)) return;
    collection.sorted = undefined;
    if (collection.byId.size === 0) this.#collections.delete(name);
  }

  #remember(write: RecentWrite): void {
    this.#recent.push(write);
    this.#recentById.set(write.id, write);
    if (this.#recent.length > recentLength) this.#recentById.delete(this.#recent.shift()!.id);
  }
}

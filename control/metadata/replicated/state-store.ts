// Where a replica of the metadata keeps its state between checkpoints: a LevelDB, which each checkpoint brings up to date
// in one synced batch. Keys, with a zero byte between their parts:
//
//   m                        {"format":1,"index":n,"oldest":n,"revision":n,"commands":n,"recent":[...]}
//   d <collection> <id>      <revision> LF <body as JSON>
//   h <revision, 16 digits>  [collection, id, last, is it there?] LF <body as JSON>

import { ClassicLevel } from 'classic-level';
import { ChangeHistory } from './change-history.ts';
import type { StoredChange } from './change-history.ts';
import { DocumentState } from './document-state.ts';
import type { StateHead, StoredText } from './document-state.ts';

const formatVersion = 1;
const separator = '\0';
const afterSeparator = '\x01';
const metaKey = 'm';
/** Bytes put into a batch between two ticks of the event loop. */
const sliceBytes = 512 * 1024;

interface Meta extends StateHead {
  format: number;
  /** Log index. */
  index: number;
  /** Revision of the oldest change that is kept. */
  oldest: number;
}

export interface LoadedState {
  index: number;
  state: DocumentState;
  history: ChangeHistory;
}

/** Changes since the last checkpoint. */
export interface StateDelta {
  index: number;
  head: StateHead;
  /** Documents by collection and id; undefined for deleted ones. */
  documents: readonly { collection: string; id: string; document: StoredText | undefined }[];
  /** Changes to be added to the stored ones. */
  changes: readonly StoredChange[];
  /** Those before it are dropped. */
  oldest: number;
}

export class StateStore {
  readonly #db: ClassicLevel<string, string>;
  /** Oldest of its changes. */
  #oldest = 1;

  private constructor(db: ClassicLevel<string, string>) {
    this.#db = db;
  }

  /** Throws an error with the code LEVEL_LOCKED in its cause when another process has it open. */
  static async open(path: string): Promise<StateStore> {
    const db = new ClassicLevel<string, string>(path, { compression: false });
    await db.open();
    return new StateStore(db);
  }

  async load(historyLength: number): Promise<LoadedState> {
    const text = await this.#db.get(metaKey);
    if (text === undefined) {
      return { index: 0, state: new DocumentState(), history: new ChangeHistory(historyLength) };
    }
    const { format, index, oldest, ...head } = JSON.parse(text) as Meta;
    if (format !== formatVersion) {
      throw new Error(`the metadata's copy has format ${format}, which a newer program wrote`);
    }
    this.#oldest = oldest;
    const state = new DocumentState(head);
    for await (const [key, value] of this.#db.iterator(rangeOf('d'))) {
      state.put(documentOf(key, value));
    }
    const history = new ChangeHistory(historyLength, oldest - 1);
    for await (const [key, value] of this.#db.iterator(rangeOf('h'))) {
      history.add(changeOf(key, value));
    }
    return { index, state, history };
  }

  /** Durable, all of it or nothing, when it resolves. */
  async save({ index, head, documents, changes, oldest }: StateDelta): Promise<void> {
    const batch = new SlicedBatch(this.#db);
    for (const { collection, id, document } of documents) {
      const key = documentKey(collection, id);
      if (document === undefined) await batch.del(key);
      else await batch.put(key, `${document.revision}\n${document.text}`);
    }
    for (let gone = this.#oldest; gone < oldest; gone++) await batch.del(historyKey(gone));
    for (const { revision, collection, id, last, text } of changes) {
      const about = JSON.stringify([collection, id, last, text !== undefined]);
      await batch.put(historyKey(revision), `${about}\n${text ?? ''}`);
    }
    const meta: Meta = { format: formatVersion, index, oldest, ...head };
    await batch.put(metaKey, JSON.stringify(meta));
    await batch.write();
    this.#oldest = oldest;
  }

  /** Like `save`, for a state unrelated to the existing one. It begins without a history. */
  async replace(index: number, head: StateHead, documents: readonly StoredText[]): Promise<void> {
    const batch = new SlicedBatch(this.#db);
    for await (const key of this.#db.keys()) await batch.del(key);
    for (const { collection, id, revision, text } of documents) {
      await batch.put(documentKey(collection, id), `${revision}\n${text}`);
    }
    const oldest = head.revision + 1;
    const meta: Meta = { format: formatVersion, index, oldest, ...head };
    await batch.put(metaKey, JSON.stringify(meta));
    await batch.write();
    this.#oldest = oldest;
  }

  close(): Promise<void> {
    return this.#db.close();
  }
}

/** A batch that leaves the event loop to others while it is filled. */
class SlicedBatch {
  readonly #batch: ReturnType<ClassicLevel<string, string>['batch']>;
  #bytes = 0;

  constructor(db: ClassicLevel<string, string>) {
    this.#batch = db.batch();
  }

  async put(key: string, value: string): Promise<void> {
    this.#batch.put(key, value);
    await this.#added(key.length + value.length);
  }

  async del(key: string): Promise<void> {
    this.#batch.del(key);
    await this.#added(key.length);
  }

  async write(): Promise<void> {
    await this.#batch.write({ sync: true });
  }

  async #added(bytes: number): Promise<void> {
    this.#bytes += bytes + 100;
    if (this.#bytes < sliceBytes) return;
    this.#bytes = 0;
    await new Promise(setImmediate);
  }
}

function rangeOf(kind: 'd' | 'h'): { gt: string; lt: string } {
  return { gt: `${kind}${separator}`, lt: `${kind}${afterSeparator}` };
}

function documentKey(collection: string, id: string): string {
  return `d${separator}${collection}${separator}${id}`;
}

function historyKey(revision: number): string {
  return `h${separator}${String(revision).padStart(16, '0')}`;
}

function documentOf(key: string, value: string): StoredText {
  const [, collection, id] = key.split(separator) as [string, string, string];
  const at = value.indexOf('\n');
  return { collection, id, revision: Number(value.slice(0, at)), text: value.slice(at + 1) };
}

function changeOf(key: string, value: string): StoredChange {
  const at = value.indexOf('\n');
  const [collection, id, last, isThere] = JSON.parse(value.slice(0, at)) as [
    string,
    string,
    number,
    boolean,
  ];
  const text = isThere ? value.slice(at + 1) : undefined;
  return { revision: Number(key.slice(2)), collection, id, text, last };
}

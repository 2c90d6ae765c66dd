// The connection to the database. The driver mostly reconnects by itself after an outage, but its monitor has been
// seen to hang after connections broke at an unlucky moment. So after lasting failures a new client replaces the old
// client.

import { setTimeout as sleep } from 'node:timers/promises';
import { type Collection, type Db, MongoClient, ReadConcern } from 'mongodb';
import { MetadataUnavailable } from '../document-store.ts';
import type { Deadline } from './deadline.ts';
import { isDuplicate } from './failures.ts';
import {
  type CheckpointRecord,
  type ChunkRecord,
  formatVersion,
  type LogRecord,
  type StoreRecord,
} from './layout.ts';
import { databaseOf } from './uri.ts';

interface Collections {
  log: Collection<LogRecord>;
  checkpoints: Collection<CheckpointRecord>;
  chunks: Collection<ChunkRecord>;
}

interface ConnectionOptions {
  uri: string;
  database: string | undefined;
  timeoutMs: number;
}

const closeMs = 2000;

export class Connection {
  readonly #options: ConnectionOptions;
  #client: MongoClient;
  #collections: Collections | undefined;
  /** Since when, in monotonic milliseconds, nothing got through this client; undefined if it did. */
  #failingSince: number | undefined;
  #isClosed = false;

  /** Sends nothing yet. Throws when the URI is invalid. */
  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#client = this.#newClient();
  }

  get isOpen(): boolean {
    return this.#collections !== undefined;
  }

  get collections(): Collections {
    if (this.#collections === undefined) {
      throw new MetadataUnavailable('the metadata store is not connected');
    }
    return this.#collections;
  }

  /** Connects if it is not. */
  async open(deadline: Deadline): Promise<void> {
    if (this.#collections !== undefined) return;
    const client = this.#client;
    try {
      await deadline.run(() => client.connect());
      this.#collections = await this.#prepare(client, deadline);
    } catch (error) {
      // One that has failed to connect would never try again.
      this.#replaceClient();
      throw error;
    }
  }

  succeeded(): void {
    this.#failingSince = undefined;
  }

  failed(): void {
    const now = performance.now();
    this.#failingSince ??= now;
    if (now - this.#failingSince >= 2 * this.#options.timeoutMs) this.#replaceClient();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await discard(this.#client);
  }

  #replaceClient(): void {
    if (this.#isClosed) return;
    void discard(this.#client);
    this.#client = this.#newClient();
    this.#collections = undefined;
    this.#failingSince = undefined;
  }

  #newClient(): MongoClient {
    const { uri, timeoutMs } = this.#options;
    return new MongoClient(uri, {
      appName: 'polyrow',
      serverSelectionTimeoutMS: timeoutMs,
      connectTimeoutMS: timeoutMs,
      socketTimeoutMS: 2 * timeoutMs,
      heartbeatFrequencyMS: 2000,
      maxPoolSize: 8,
      // The store resolves doubtful writes itself, because it knows more about them than the driver.
      retryWrites: false,
      writeConcern: { w: 'majority', journal: true },
      readPreference: 'primary',
    });
  }

  async #prepare(client: MongoClient, deadline: Deadline): Promise<Collections> {
    const admin = client.db('admin');
    const hello = await deadline.run((options) =>
      admin.command({ hello: 1 }, options).catch(() => admin.command({ ismaster: 1 }, options)),
    );
    const { uri, database = databaseOf(uri) } = this.#options;
    // A server on its own has no majority to ask.
    const isReplicated = hello['setName'] !== undefined || hello['msg'] === 'isdbgrid';
    const db = isReplicated
      ? client.db(database, { readConcern: new ReadConcern('majority') })
      : client.db(database);
    await checkFormat(db, deadline);
    return {
      log: db.collection('log'),
      checkpoints: db.collection('checkpoints'),
      chunks: db.collection('chunks'),
    };
  }
}

/** Closing sends a message to the server, which may be out of reach. */
async function discard(client: MongoClient): Promise<void> {
  const closed = client.close(true).catch(() => {});
  await Promise.race([closed, sleep(closeMs, undefined, { ref: false })]);
}

async function checkFormat(db: Db, deadline: Deadline): Promise<void> {
  const store = db.collection<StoreRecord>('store');
  const read = () => deadline.run((options) => store.findOne({ _id: 'format' }, options));
  let found = await read();
  if (found === null) {
    try {
      const format: StoreRecord = { _id: 'format', version: formatVersion };
      await deadline.run((options) => store.insertOne(format, options));
      return;
    } catch (error) {
      if (!isDuplicate(error)) throw error;
      found = await read();
    }
  }
  if (found !== null && found.version > formatVersion) {
    throw new Error(
      `the metadata was written by a newer Polyrow (format ${found.version}; this one reads up to ${formatVersion})`,
    );
  }
}

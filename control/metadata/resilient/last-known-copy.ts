// The last known state of a remote store, in a local file, for a start without it. Lines, each with its CRC-32 in
// front:
//
//   9f3c2a11 {"format":1,"revision":17,"documents":2}
//   5b0e4d20 {"collection":"tables","id":"000000","revision":3,"body":{…}}     one a document
//   …
//   77aa01c4 [{"revision":18,"collection":"tables","id":"000001","body":{…}}]   one a write since
//
// The file is written whole and renamed into place, then writes are added, until they are more than the
// rest and it is written anew. An incomplete last line was torn by a crash and is left out: one write less is known.
// Any other line with a wrong checksum is damage.
// The file's modification time is when the copy was last known to be complete.

import { type FileHandle, open, rename, utimes } from 'node:fs/promises';
import { closeSync, fsyncSync, openSync, readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { crc32 } from 'node:zlib';
import type { DocumentChange, Snapshot, StoredDocument } from '../document-store.ts';
import { Replica } from '../replica.ts';

const formatVersion = 1;
/** Added bytes up to which the file is never written anew. */
const smallBytes = 1024 * 1024;
const longestQueue = 1000;

interface Header {
  format: number;
  revision: number;
  documents: number;
}

export interface LastKnown {
  snapshot: Snapshot;
  /** Milliseconds since 1970. */
  confirmedAt: number;
}

/** The contents of the file are damaged. */
export class DamagedCopy extends Error {
  override readonly name = 'DamagedCopy';
}

/** undefined when there is no such file. Throws `DamagedCopy`. */
export function readLastKnown(path: string): LastKnown | undefined {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  const lines = text.split('\n');
  // Bytes after the last line break are an incomplete line.
  lines.pop();
  const values = lines.map((line, i) => {
    const value = decodeLine(line);
    if (value === undefined) throw damaged(path, i + 1);
    return value;
  });
  const header = values[0] as Header | undefined;
  if (header?.format !== formatVersion) throw damaged(path, 1);
  const end = 1 + header.documents;
  const documents = values.slice(1, end) as StoredDocument[];
  if (documents.length < header.documents) throw damaged(path, values.length);
  const replica = new Replica();
  replica.replace({ revision: header.revision, documents });
  for (const write of values.slice(end) as DocumentChange[][]) replica.apply(write);
  return { snapshot: replica.snapshot(), confirmedAt: statSync(path).mtimeMs };
}

function damaged(path: string, line: number): DamagedCopy {
  return new DamagedCopy(`${path} is damaged in line ${line}`);
}

function encodeLine(value: object): string {
  const json = JSON.stringify(value);
  return `${checksumOf(json)} ${json}\n`;
}

function decodeLine(line: string): unknown {
  const json = line.slice(9);
  return line.slice(0, 9) === `${checksumOf(json)} ` ? JSON.parse(json) : undefined;
}

function checksumOf(json: string): string {
  return crc32(json).toString(16).padStart(8, '0');
}

/** Writes the file. Calls return at once; their work is done in order. */
export class LastKnownCopy {
  readonly #path: string;
  readonly #onOutcome: (error: Error | undefined) => void;
  #file: FileHandle | undefined;
  #bytes = 0;
  #baseBytes = 0;
  /** Up to which the file has everything. */
  #revision = 0;
  /** The copy must be rewritten: it lacks changes, or there was a gap. */
  #isStale = true;
  #waiting = 0;
  #lastQueued: Promise<void> = Promise.resolve();

  /** `onOutcome` hears of every attempt to write. */
  constructor(path: string, onOutcome: (error: Error | undefined) => void) {
    this.#path = path;
    this.#onOutcome = onOutcome;
  }

  /** Something has changed; `snapshot` gives all there is at the time it is asked. */
  add(changes: readonly DocumentChange[], snapshot: () => Snapshot): void {
    // A disk this slow gets it all in one, when it comes to it.
    if (this.#waiting >= longestQueue) this.#isStale = true;
    else this.#serialized(() => this.#add(changes, snapshot));
  }

  async #add(changes: readonly DocumentChange[], snapshot: () => Snapshot): Promise<void> {
    const added = this.#bytes - this.#baseBytes;
    if (this.#isStale || added > Math.max(smallBytes, this.#baseBytes)) {
      await this.#rewrite(snapshot());
      return;
    }
    const { revision } = changes.at(-1)!;
    if (revision <= this.#revision) return;
    this.#isStale = true;
    const line = Buffer.from(encodeLine(changes));
    await this.#file!.appendFile(line);
    this.#bytes += line.length;
    this.#revision = revision;
    this.#isStale = false;
  }

  /** All there is has been replaced. */
  replace(snapshot: () => Snapshot): void {
    this.#serialized(() => this.#rewrite(snapshot()));
  }

  /** Marks the copy as complete as of now. Also retries failed writes. */
  confirm(snapshot: () => Snapshot): void {
    this.#serialized(async () => {
      if (this.#isStale) await this.#rewrite(snapshot());
      const now = new Date();
      await utimes(this.#path, now, now);
    });
  }

  async close(): Promise<void> {
    await this.#lastQueued;
    await this.#file?.close();
  }

  #serialized(action: () => Promise<void>): void {
    this.#waiting++;
    this.#lastQueued = this.#lastQueued
      .then(action)
      .then(() => undefined)
      .catch((error: Error) => error)
      .then((outcome) => {
        this.#waiting--;
        this.#onOutcome(outcome);
      });
  }

  async #rewrite({ revision, documents }: Snapshot): Promise<void> {
    this.#isStale = true;
    const header: Header = { format: formatVersion, revision, documents: documents.length };
    const text = [header, ...documents].map(encodeLine).join('');
    const temporary = `${this.#path}.tmp`;
    await this.#file?.close();
    this.#file = undefined;
    // Passwords' hashes are in it.
    const file = await open(temporary, 'w', 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, this.#path);
    syncDirectory(dirname(this.#path));
    this.#file = await open(this.#path, 'a');
    this.#bytes = this.#baseBytes = Buffer.byteLength(text);
    this.#revision = revision;
    this.#isStale = false;
  }
}

function syncDirectory(path: string): void {
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

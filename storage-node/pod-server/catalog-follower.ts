// Tells a gateway of the databases of one group, now and after each change.

import { writeDatabase } from '../../contracts/series-protocol/answers.ts';
import { answerPartBytes, CatalogPart } from '../../contracts/series-protocol/frames.ts';
import type { Database } from '../../contracts/series-store.ts';
import { WireWriter } from '../../universal-row/protocol/wire.ts';

interface CatalogFollowerOptions {
  readonly group: number;
  readonly store: {
    databases(): readonly Database[];
    /** Another one whenever there may be other databases or policies than before. */
    readonly catalogVersion: number;
  };
  /** Resolves once the part is on its way; rejects when the gateway wants no more. */
  readonly send: (part: Buffer) => Promise<void>;
  /** It tells no more. */
  readonly failed: (error: unknown) => void;
}

export class CatalogFollower {
  readonly group: number;
  readonly #options: CatalogFollowerOptions;
  /** Version told last. */
  #told: number | undefined;
  #isForced = false;
  /** The last telling. */
  #telling: Promise<void> = Promise.resolve();

  constructor(options: CatalogFollowerOptions) {
    this.group = options.group;
    this.#options = options;
  }

  /** Resolves when the gateway was told of the catalog as it is now, or a later one. */
  tell(isForced: boolean): Promise<void> {
    this.#isForced ||= isForced;
    const { store, failed } = this.#options;
    if (!this.#isForced && this.#told === store.catalogVersion) return this.#telling;
    this.#telling = this.#telling.then(() => this.#tell()).catch(failed);
    return this.#telling;
  }

  async #tell(): Promise<void> {
    const { store, send } = this.#options;
    const version = store.catalogVersion;
    if (!this.#isForced && this.#told === version) return;
    this.#isForced = false;
    this.#told = version;
    const writer = new WireWriter(1024);
    writer.u8(CatalogPart.first);
    for (const database of store.databases()) {
      if (writer.pos > answerPartBytes) {
        await send(writer.view());
        writer.pos = 0;
        writer.u8(0);
      }
      writeDatabase(writer, database);
    }
    writer.buf[0]! |= CatalogPart.last;
    await send(writer.view());
  }
}

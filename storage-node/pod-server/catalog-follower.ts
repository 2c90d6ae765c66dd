// Tells a gateway of the databases of one group, now and after each change.

import { writeDatabase } from '../../contracts/series-protocol/answers.ts';
import { answerPartBytes, CatalogPart } from '../../contracts/series-protocol/frames.ts';
import type { Database } from '../../contracts/series-store.ts';
import { WireWriter } from '../../universal-row/protocol/wire.ts';

interface Catalog {
  databases(): readonly Database[];
  /** Another one whenever there may be other databases or policies than before. */
  readonly catalogVersion: number;
}

interface CatalogFollowerOptions {
  readonly group: number;
  /** Of the replica that is here now; undefined while there is none. */
  readonly catalog: () => Catalog | undefined;
  /** Resolves once the part is on its way; rejects when the gateway wants no more. */
  readonly send: (part: Buffer) => Promise<void>;
  /** It tells no more. */
  readonly failed: (error: unknown) => void;
}

export class CatalogFollower {
  readonly group: number;
  readonly #options: CatalogFollowerOptions;
  /** What was told last. */
  #told: { readonly catalog: Catalog; readonly version: number } | undefined;
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
    const { catalog, failed } = this.#options;
    if (!this.#isForced && this.#isTold(catalog())) return this.#telling;
    this.#telling = this.#telling.then(() => this.#tell()).catch(failed);
    return this.#telling;
  }

  #isTold(catalog: Catalog | undefined): boolean {
    const told = this.#told;
    return catalog === told?.catalog && catalog?.catalogVersion === told?.version;
  }

  async #tell(): Promise<void> {
    const { send } = this.#options;
    const catalog = this.#options.catalog();
    if (catalog === undefined || (!this.#isForced && this.#isTold(catalog))) return;
    this.#isForced = false;
    this.#told = { catalog, version: catalog.catalogVersion };
    const writer = new WireWriter(1024);
    writer.u8(CatalogPart.first);
    for (const database of catalog.databases()) {
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

// A load whose every write is of several documents that belong together: a family is a parent and two
// children, made, changed and removed in one write. Half a family is a torn write; a child without a
// parent is an orphan.

import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type DocumentStore,
  type DocumentWrite,
  MetadataUnavailable,
  RevisionConflict,
  type StoredDocument,
} from '../../control/metadata/document-store.ts';
import type { Random } from '../support/random.ts';

const collections = ['parents', 'children', 'children'] as const;
const namesOf = (family: string) => [family, `${family}/1`, `${family}/2`] as const;

interface FamilyWrite {
  family: string;
  /** 0 for one that is not there. */
  version: number;
  writes: DocumentWrite[];
}

/** A write, and what came of it. */
interface FamilyOutcome extends FamilyWrite {
  /** Undefined when the outcome is unknown. */
  revisions: number[] | undefined;
}

export class FamilyWriter {
  readonly #families: string[];
  readonly #random: Random;
  readonly #pauseMs: number;
  /** Possible states of each: acknowledged ones, and those that may have been written since. */
  readonly may = new Map<string, Set<number>>();
  acknowledged = 0;
  /** Outcomes of its steps, in order, without those that had no effect. */
  readonly outcomes: FamilyOutcome[] = [];
  /** Last error while it was running. */
  lastFailure: Error | undefined;
  #next = 1;

  /** `pauseMs`: the longest pause between two writes; the store is fair to those who leave each other room. */
  constructor(name: string, random: Random, pauseMs = 30, count = 4) {
    this.#pauseMs = pauseMs;
    this.#families = Array.from({ length: count }, (_, i) => `${name}${i}`);
    this.#random = random;
    for (const family of this.#families) this.may.set(family, new Set([0]));
  }

  /** Writes until it is told to stop, whatever becomes of the store. */
  async run(store: DocumentStore, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.step(store);
        await sleep(this.#random.below(this.#pauseMs));
      } catch (error) {
        if (!(error instanceof MetadataUnavailable)) throw error;
        this.lastFailure = error;
        await sleep(20);
      }
    }
  }

  /** One write. An error leaves it open what became of it only if its outcome is unknown. */
  async step(store: DocumentStore): Promise<void> {
    const write = await this.prepare(store);
    let revisions: number[];
    try {
      revisions = await store.write(write.writes);
    } catch (error) {
      // One of an unknown outcome may come to be at any time.
      if (error instanceof RevisionConflict && this.may.get(write.family)!.size > 1) return;
      if (error instanceof MetadataUnavailable && error.outcome === 'unknown') {
        this.begun(write);
        this.outcomes.push({ ...write, revisions: undefined });
      }
      throw error;
    }
    this.made(write);
    this.outcomes.push({ ...write, revisions });
  }

  async prepare(store: DocumentStore): Promise<FamilyWrite> {
    const family = this.#random.pick(this.#families);
    const may = this.may.get(family)!;
    const there = await readFamily(store, family);
    const now = versionOf(family, there);
    assert(may.has(now), `${family} is at ${now}, not at one of ${[...may].join()}`);
    const version = now > 0 && this.#random.chance(0.3) ? 0 : this.#next++;
    const writes = namesOf(family).map((id, i): DocumentWrite => {
      const body = version === 0 ? undefined : { family, version };
      return { collection: collections[i]!, id, body, expected: there[i]?.revision ?? 0 };
    });
    return { family, version, writes };
  }

  /** From now on it may have been made. */
  begun({ family, version }: FamilyWrite): void {
    this.may.get(family)!.add(version);
  }

  made({ family, version }: FamilyWrite): void {
    this.may.set(family, new Set([version]));
    this.acknowledged++;
  }

  /** Every family is whole, and at a version it may be at. */
  check(documents: readonly StoredDocument[], where: string): void {
    for (const family of this.#families) {
      const there = namesOf(family).map((id, i) =>
        documents.find((one) => one.collection === collections[i] && one.id === id),
      );
      const version = versionOf(family, there);
      const may = [...this.may.get(family)!];
      assert(
        may.includes(version),
        `${where}: ${family} is at ${version}, not at one of ${may.join()}`,
      );
    }
  }
}

async function readFamily(
  store: DocumentStore,
  family: string,
): Promise<(StoredDocument | undefined)[]> {
  for (;;) {
    const read = () => Promise.all(namesOf(family).map((id, i) => store.get(collections[i]!, id)));
    // Three reads are of one moment if nothing has changed when they are done again.
    const [first, second] = [await read(), await read()];
    const revisions = (of: typeof first) => of.map((one) => one?.revision ?? 0).join();
    if (revisions(first) === revisions(second)) return second;
  }
}

function versionOf(family: string, there: readonly (StoredDocument | undefined)[]): number {
  const versions = there.map((one) => {
    return one === undefined ? 0 : (one.body as { version: number }).version;
  });
  assert(new Set(versions).size === 1, `${family} is torn: ${versions.join()}`);
  return versions[0]!;
}

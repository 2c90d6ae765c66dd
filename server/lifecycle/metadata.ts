// Opens the metadata store that the settings name: in the data directory, or in MongoDB with a copy in the data
// directory. When the setting has changed, the documents are moved.

import { existsSync, rmSync } from 'node:fs';
import type { DocumentStore } from '../../control/metadata/document-store.ts';
import { EmbeddedDocumentStore } from '../../control/metadata/embedded-document-store.ts';
import { fillStore, isBeingFilled } from '../../control/metadata/move-documents.ts';
import type {
  MetadataEvent,
  MetadataStatus,
  ResilientStore,
} from '../../control/metadata/resilient/resilient-store.ts';
import type { MetricSample } from '../../control/monitor/metric-sample.ts';
import type { DataDirectory } from './data-directory.ts';
import { ExitError } from './exit-error.ts';

const embeddedMetadata = 'embedded';

export interface Metadata {
  store: DocumentStore;
  /** Other processes may use it at the same time. */
  isShared: boolean;
  samples(): MetricSample[];
}

/** For the log. */
type Tell = (level: 'info' | 'warn' | 'error', message: string) => void;

/** Opens the metadata named by the setting `metadata`; errors have readable messages. */
export async function openMetadata(
  data: DataDirectory,
  setting: string = embeddedMetadata,
  tell: Tell = () => {},
): Promise<Metadata> {
  return setting === embeddedMetadata
    ? await openEmbedded(data, tell)
    : await openMongo(data, setting, tell);
}

async function openEmbedded(data: DataDirectory, tell: Tell): Promise<Metadata> {
  const store = await openLevel(data);
  const copy = copyFile(data);
  if (existsSync(copy)) {
    // The last start had it elsewhere.
    const { readLastKnown } = await import('../../control/metadata/resilient/last-known-copy.ts');
    try {
      const { documents } = readLastKnown(copy)!.snapshot;
      await fillStore(store, documents);
      rmSync(copy);
      tell('info', `${documents.length} metadata documents moved into the data directory`);
    } catch (error) {
      await store.close();
      throw new ExitError(`cannot take over the metadata from ${copy}: ${messageOf(error)}`);
    }
  }
  return {
    store,
    isShared: false,
    samples: () => metadataSamples({ up: true, revision: store.revision, ageMs: 0 }),
  };
}

async function openLevel(data: DataDirectory): Promise<EmbeddedDocumentStore> {
  const path = data.file('metadata');
  try {
    return await EmbeddedDocumentStore.open(path);
  } catch (error) {
    const cause = (error as Error).cause as (Error & { code?: string }) | undefined;
    if (cause?.code === 'LEVEL_LOCKED') {
      throw new ExitError(`the data directory ${data.path} is in use by another process`);
    }
    throw new ExitError(`cannot open ${path}: ${cause?.message ?? messageOf(error)}`);
  }
}

async function openMongo(data: DataDirectory, uri: string, tell: Tell): Promise<Metadata> {
  // The driver is slow to load and used only here.
  const [{ MongoDocumentStore }, { ResilientStore }, { shownUri }] = await Promise.all([
    import('../../control/metadata/mongo/mongo-document-store.ts'),
    import('../../control/metadata/resilient/resilient-store.ts'),
    import('../../control/metadata/mongo/uri.ts'),
  ]);
  const name = shownUri(uri);
  let inner: DocumentStore;
  try {
    inner = new MongoDocumentStore({ uri });
  } catch {
    // The driver's message may contain the password.
    throw new ExitError(`the setting metadata is not a MongoDB URI that can be used: ${name}`);
  }
  let store: ResilientStore;
  try {
    store = await ResilientStore.open({
      store: inner,
      copy: copyFile(data),
      onEvent: (event) => report(event, name, tell),
    });
  } catch (error) {
    throw new ExitError(`cannot start with metadata in ${name}: ${messageOf(error)}`);
  }
  try {
    if (store.status.up) await moveIn(data, store, name, tell);
  } catch (error) {
    await store.close();
    throw new ExitError(`cannot move the metadata to ${name}: ${messageOf(error)}`);
  }
  return { store, isShared: true, samples: () => metadataSamples(store.status) };
}

/** Moves the data directory's documents into an empty database. */
async function moveIn(
  data: DataDirectory,
  store: DocumentStore,
  name: string,
  tell: Tell,
): Promise<void> {
  if (store.revision > 0 && !(await isBeingFilled(store))) return;
  if (!existsSync(data.file('metadata'))) return;
  const level = await openLevel(data);
  const { documents } = await level.snapshot();
  await level.close();
  if (documents.length === 0) return;
  await fillStore(store, documents);
  tell('info', `${documents.length} metadata documents moved from the data directory to ${name}`);
}

function report(event: MetadataEvent, name: string, tell: Tell): void {
  switch (event.kind) {
    case 'lost': {
      const { revision, ageMs } = event.status;
      const known = `revision ${revision}, known to be the last ${Math.round(ageMs / 1000)} s ago`;
      tell(
        'warn',
        `metadata in ${name} is out of reach: serving with the last known state (${known}); changes are refused: ${event.error.message}`,
      );
      return;
    }
    case 'back':
      tell('info', `metadata in ${name} is back, at revision ${event.status.revision}`);
      return;
    case 'copy-failed':
      tell('error', `the copy of the metadata is not kept: ${event.error.message}`);
      return;
    case 'copy-back':
      tell('info', 'the copy of the metadata is kept again');
      return;
  }
}

export function metadataSamples({ up, revision, ageMs }: MetadataStatus): MetricSample[] {
  const sample = (name: string, help: string, value: number): MetricSample => {
    return { name: `polyrow_metadata_${name}`, help, type: 'gauge', value };
  };
  return [
    sample('up', '1 if the metadata store answers, 0 if only its last known state is used.', +up),
    sample(
      'last_known_age_seconds',
      'Time since the metadata in use was known to be the latest.',
      ageMs / 1000,
    ),
    sample('revision', 'Changes of metadata seen so far.', revision),
  ];
}

function copyFile(data: DataDirectory): string {
  return data.file('metadata-copy');
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

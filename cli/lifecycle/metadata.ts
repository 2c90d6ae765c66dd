import { EmbeddedDocumentStore } from '../../control/metadata/embedded-document-store.ts';
import type { DataDirectory } from './data-directory.ts';
import { ExitError } from './exit-error.ts';

/** Opens the metadata store of a data directory, in words for people when that fails. */
export async function openMetadata(data: DataDirectory): Promise<EmbeddedDocumentStore> {
  const path = data.file('metadata');
  try {
    return await EmbeddedDocumentStore.open(path);
  } catch (error) {
    const cause = (error as Error).cause as (Error & { code?: string }) | undefined;
    if (cause?.code === 'LEVEL_LOCKED') {
      throw new ExitError(`the data directory ${data.path} is in use by another process`);
    }
    throw new ExitError(`cannot open ${path}: ${cause?.message ?? (error as Error).message}`);
  }
}

// `polyrow import --rdb FILE`: an RDB file into a running server.

import { createReadStream, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { ByteSource, SourceEnded } from './byte-source.ts';
import { ExitError } from '../../server/lifecycle/exit-error.ts';
import type { ImportView } from './import-view.ts';
import { type RdbPlace, RdbReader } from './rdb-reader.ts';
import { StateFile } from './state-file.ts';
import type { Tally, Target } from './target.ts';

interface FileProgress {
  place: RdbPlace;
  size: number;
  changedAt: number;
  tally: Tally;
}

const saveMs = 500;

/** Resolves when all of the file is in the target. */
export async function importFile(
  file: string,
  target: Target,
  targetName: string,
  view: ImportView,
  options: { state: string | undefined; skipsFunctions: boolean },
): Promise<void> {
  const path = resolve(file);
  let size: number;
  let changedAt: number;
  try {
    ({ size, mtimeMs: changedAt } = statSync(path));
  } catch (error) {
    throw new ExitError(`cannot read ${path}: ${(error as Error).message}`);
  }
  const state = new StateFile<FileProgress>(options.state ?? `${path}.import`, {
    source: path,
    target: targetName,
    databases: target.databases.text,
  });
  const known = state.load();
  if (known !== undefined && (known.size !== size || known.changedAt !== changedAt)) {
    throw new ExitError(
      `${path} has changed since it was begun: remove ${state.path} to begin anew`,
    );
  }
  const start = known?.place.offset ?? 0;
  const chunks = createReadStream(path, { start, highWaterMark: 1 << 20 });
  const source = new ByteSource(chunks[Symbol.asyncIterator](), undefined, start);
  const reader =
    known === undefined ? await begin(source, path) : RdbReader.resume(source, known.place);
  Object.assign(target.tally, known?.tally);
  if (known !== undefined) view.note(`resumes at ${Math.floor((100 * start) / size)} %`);
  let savedAt = Date.now();
  for (;;) {
    const item = await nextOf(reader, path);
    if (item.kind === 'end') break;
    if (item.kind === 'value') await target.put(item);
    else if (item.kind === 'module') target.tally.modules++;
    else if (!options.skipsFunctions) await target.loadFunction(item.code);
    view.loading(source.position / size, source.position, target.tally.keys);
    if (Date.now() - savedAt < saveMs) continue;
    // Everything noted as done has been acknowledged.
    await target.link.drained();
    state.save({ place: reader.place, size, changedAt, tally: target.tally });
    savedAt = Date.now();
  }
  await target.link.drained();
  chunks.destroy();
  state.remove();
}

async function begin(source: ByteSource, path: string): Promise<RdbReader> {
  try {
    return await RdbReader.begin(source);
  } catch (error) {
    if (error instanceof SourceEnded) throw new ExitError(`${path} is too short for an RDB file`);
    throw error;
  }
}

async function nextOf(reader: RdbReader, path: string): ReturnType<RdbReader['next']> {
  try {
    return await reader.next();
  } catch (error) {
    if (error instanceof SourceEnded) throw new ExitError(`${path} ends in the middle of a value`);
    throw error;
  }
}

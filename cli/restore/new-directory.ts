// `polyrow restore --into`: a data directory made from a backup.

import { existsSync, readdirSync, rmSync } from 'node:fs';
import type { RestoreRequest } from '../../control/backup/backup-jobs.ts';
import { makeDurableDirectory } from '../../universal-row/durable-names.ts';
import { realDisk } from '../../storage-node/disk/real-disk.ts';
import { ExitError } from '../../server/lifecycle/exit-error.ts';
import { exitCodes } from '../../server/exit-codes.ts';
import { placeOfModel } from '../../storage-node/backup/series-share.ts';
import { PrivateServer } from './private-server.ts';
import { planRestore } from '../../server/backup/restore-plan.ts';

/**
 * Starts a server on an empty or missing directory and runs `work` beside it. Files of a failed attempt are removed.
 */
export async function inNewDirectory<T>(
  directory: string,
  request: RestoreRequest,
  work: () => Promise<T>,
): Promise<T> {
  const wasThere = existsSync(directory);
  if (wasThere && readdirSync(directory).length > 0) {
    throw new ExitError(`${directory} is not empty`, exitCodes.conflict);
  }
  // Before anything is made: the backup may not be there.
  const flags = await flagsFor(request);
  makeDurableDirectory(realDisk, directory);
  try {
    const server = await PrivateServer.start(directory, flags);
    const result = await work().catch(async (error: unknown) => {
      await server.stop().catch(() => {});
      throw error;
    });
    await server.stop();
    return result;
  } catch (error) {
    for (const name of readdirSync(directory)) {
      rmSync(`${directory}/${name}`, { recursive: true, force: true });
    }
    if (!wasThere) rmSync(directory, { recursive: true, force: true });
    throw error;
  }
}

/**
 * As many databases as tenant `default` must have for all its rows to be within reach, and as many partitions of time
 * series as in the backup.
 */
async function flagsFor(request: RestoreRequest): Promise<string[]> {
  try {
    const { chain, tenants } = await planRestore(realDisk, request);
    const own = tenants.find(({ name }) => name === 'default');
    const databases = Math.max(16, own?.document.tenant.databases ?? 0);
    const counts = chain.at(-1)!.parts.map(({ model }) => placeOfModel(model).of);
    const partitions = Math.max(1, ...counts);
    return ['--redis.databases', `${databases}`, '--influx.partitions', `${partitions}`];
  } catch (error) {
    throw new ExitError(`restore failed: ${(error as Error).message}`);
  }
}

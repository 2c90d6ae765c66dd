// The admin API of a server that a bench has started.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { AdminClient } from '../../cli/commands/admin-client.ts';
import { adminTokenFile } from '../../server/lifecycle/admin-token.ts';
import type { Running } from './processes.ts';

/** The Redis port answers a little before the admin port does. */
const endpointWithinMs = 10_000;

export async function adminOf(server: Running): Promise<AdminClient> {
  return new AdminClient(await adminAccess(server.directory));
}

/** Where the admin API of the server on this data directory is, and the token of an operator. */
export async function adminAccess(directory: string): Promise<{ url: string; token: string }> {
  const endpoint = join(directory, 'admin-endpoint');
  const deadline = performance.now() + endpointWithinMs;
  while (!existsSync(endpoint) && performance.now() < deadline) await sleep(20);
  const read = (path: string): string => readFileSync(path, 'utf8').trim();
  return { url: read(endpoint), token: read(join(directory, adminTokenFile)) };
}

// Calls of the admin API of a server that a bench has started.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Running } from './processes.ts';

/** Throws unless it is done; `path` is that below `/v1`. */
export async function adminCall(
  { directory }: Running,
  method: string,
  path: string,
  body: object,
): Promise<void> {
  const read = (name: string): string => readFileSync(join(directory, name), 'utf8').trim();
  const answer = await fetch(`${read('admin-endpoint')}/v1${path}`, {
    method,
    headers: {
      authorization: `Bearer ${read('admin-token')}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`${method} ${path}: ${await answer.text()}`);
}

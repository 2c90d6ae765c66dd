// Servers to back up and to restore to, and the commands that do it, as an operator runs them.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BackupResult } from '../../server/backup/backup-run.ts';
import type { RestoreResult } from '../../server/backup/restore-run.ts';
import type { VerifiedBackup } from '../../storage-node/backup/verify.ts';
import { type Finished, PolyrowProcess } from '../cli/polyrow-process.ts';
import { Polyrow } from '../support/polyrow.ts';

export class BackupScene {
  readonly directory = mkdtempSync(join(tmpdir(), 'polyrow-backups-'));
  readonly set = join(this.directory, 'set');
  readonly servers: Polyrow[] = [];

  async server(flags: readonly string[] = []): Promise<Polyrow> {
    const server = await Polyrow.start({ flags });
    this.servers.push(server);
    return server;
  }

  async remove(): Promise<void> {
    for (const server of this.servers) await server.remove();
    rmSync(this.directory, { recursive: true, force: true });
  }

  /** A command against a server, under way. */
  begin(server: Polyrow, ...words: string[]): PolyrowProcess {
    return new PolyrowProcess([...words, '--json', '--data-dir', server.dataDir]);
  }

  run(server: Polyrow, ...words: string[]): Promise<Finished> {
    return this.begin(server, ...words).finish();
  }

  /** Final answer of a command; throws its error message. */
  async answer<T>(server: Polyrow, ...words: string[]): Promise<T> {
    return lastLine<T>(await this.run(server, ...words));
  }

  backup(server: Polyrow, ...flags: string[]): Promise<BackupResult> {
    return this.answer(server, 'backup', '--to', this.set, ...flags);
  }

  restore(server: Polyrow, ...flags: string[]): Promise<RestoreResult> {
    return this.answer(server, 'restore', this.set, ...flags);
  }

  /** Has a server begin a job, without a command in between; resolves when it has begun. */
  async job(server: Polyrow, page: 'backups' | 'restores', body: object = {}): Promise<void> {
    const token = readFileSync(join(server.dataDir, 'admin-token'), 'utf8').trim();
    const response = await fetch(`${server.admin}/v1/${page}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ directory: this.set, ...body }),
    });
    if (response.status !== 202) throw new Error(`${response.status} ${await response.text()}`);
  }

  async verify(...flags: string[]): Promise<{
    code: number | null;
    err: string;
    backups: VerifiedBackup[];
    interrupted: string[];
  }> {
    const finished = await new PolyrowProcess(['verify', this.set, '--json', ...flags]).finish();
    const lines = finished.out.trim().split('\n');
    const answer = JSON.parse(lines.at(-1)!) as {
      backups: VerifiedBackup[];
      interrupted: string[];
    };
    return { code: finished.code, err: finished.err, ...answer };
  }
}

function lastLine<T>({ code, out, err }: Finished): T {
  if (code !== 0) throw new Error(err.trim() || `exit code ${code}`);
  return JSON.parse(out.trim().split('\n').at(-1)!) as T;
}

export async function writeLines(server: Polyrow, database: string, lines: string): Promise<void> {
  const url = `${server.influx}/write?db=${database}`;
  const response = await fetch(url, { method: 'POST', body: lines });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
}

export async function query(server: Polyrow, text: string, database = ''): Promise<unknown> {
  const url = `${server.influx}/query?db=${database}&q=${encodeURIComponent(text)}`;
  const response = await fetch(url, { method: 'POST' });
  const answer = (await response.json()) as { results?: { series?: unknown }[]; error?: string };
  if (answer.error !== undefined) throw new Error(answer.error);
  return answer.results?.[0]?.series;
}

// Checks whether backups can be restored. It reads every file byte by byte, decodes every record, compares every
// count with the manifest, and checks that each chain is complete and yields the original rows. It needs no server
// and changes nothing.

import { ExportTally } from '../../engines/tsm/ops/export-tally.ts';
import type { Disk } from '../../universal-row/environment.ts';
import { chainOf, partsOf, type PlacedPart, podOf } from './chain.ts';
import type { ChainReplays } from './chain-replay.ts';
import { checkFile, readChunks } from './chunk-reader.ts';
import { DamagedBackupError } from './damage.ts';
import { filesOf, manifestName, readManifest } from './manifest.ts';
import type { BackupManifest, PodPart } from './manifest-content.ts';
import { decoding } from './row-restore.ts';
import { RowRewriter } from './row-rewriter.ts';
import { RowTally } from './row-tally.ts';

export interface VerifiedPart {
  readonly model: string;
  /** Group, in a cluster. */
  readonly group?: number;
  readonly kind: PodPart['kind'];
  /** Up to which entry of the log it goes. */
  readonly index: number;
  /** Rows at that point, counted here or taken from the manifest. */
  readonly rows?: number;
  /** Changes of an incremental part. */
  readonly changes?: number;
  readonly shards?: number;
  readonly points?: number;
}

export interface VerifiedBackup {
  readonly id: string;
  readonly parent?: string;
  readonly tenant?: string;
  readonly bytes: number;
  readonly parts: readonly VerifiedPart[];
  /** Problems found; [] when the backup can be restored. */
  readonly problems: readonly string[];
}

interface VerifyProgress {
  (bytes: number): void;
}

export async function verifyBackup(
  disk: Disk,
  set: string,
  id: string,
  progress: VerifyProgress = () => {},
  replays?: ChainReplays,
): Promise<VerifiedBackup> {
  const problems: string[] = [];
  const attempt = async (work: () => void | Promise<void>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      const { name, message } = error as Error;
      const isExpected = name === 'DamagedBackupError' || name === 'BrokenChainError';
      if (!isExpected && (error as NodeJS.ErrnoException).code === undefined) throw error;
      problems.push(message);
    }
  };
  let manifest: BackupManifest | undefined;
  await attempt(() => {
    manifest = readManifest(disk, set, id);
  });
  if (manifest === undefined) return { id, bytes: 0, parts: [], problems };
  const found: BackupManifest = manifest;
  const directory = `${set}/${id}`;
  const files = filesOf(found);
  await attempt(() =>
    refuseStrangers(
      disk,
      directory,
      files.map(({ name }) => name),
    ),
  );
  let chain: BackupManifest[] = [];
  await attempt(() => {
    chain = chainOf(id, (one) => (one === id ? found : readManifest(disk, set, one)));
  });
  for (const file of files) {
    await attempt(async () => {
      await checkFile(disk, directory, file);
      progress(file.bytes);
    });
  }
  const parts: VerifiedPart[] = [];
  // Damage is known by now, and would only be reported twice.
  if (problems.length === 0) {
    for (const part of found.parts) {
      await attempt(async () => void parts.push(await verifyPart(disk, directory, part)));
    }
    if (replays !== undefined && problems.length === 0) {
      for (const part of found.parts) {
        if (part.tables?.some(({ checksum }) => checksum !== undefined) !== true) continue;
        await attempt(() =>
          verifySums(disk, replays, found.chain, partsOf(chain, podOf(part), set)),
        );
      }
    }
  }
  const { parent, scope } = found;
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  return {
    id,
    ...(parent === undefined ? {} : { parent }),
    ...(scope.tenant === undefined ? {} : { tenant: scope.tenant.name }),
    bytes,
    parts,
    problems,
  };
}

function refuseStrangers(disk: Disk, directory: string, names: readonly string[]): void {
  const known = new Set([manifestName, ...names]);
  const stranger = disk.list(directory).find((name) => !known.has(name));
  if (stranger === undefined) return;
  throw new DamagedBackupError(`${directory}/${stranger}`, undefined, 'it does not belong here');
}

async function verifyPart(disk: Disk, directory: string, part: PodPart): Promise<VerifiedPart> {
  const { model, group, kind, point } = part;
  const common = { model, ...(group && { group }), kind, index: point.index };
  if (part.shards !== undefined)
    return { ...common, ...(await verifySeries(disk, directory, part)) };
  const rows = (part.tables ?? []).reduce((sum, table) => sum + table.rows, 0);
  if (kind === 'all') {
    await verifyRows(disk, directory, part);
    return { ...common, rows };
  }
  return { ...common, rows, changes: await verifyEntries(disk, directory, part) };
}

/** The chain's result equals the state when its last backup was made. */
async function verifySums(
  disk: Disk,
  replays: ChainReplays,
  chain: string,
  parts: readonly PlacedPart[],
): Promise<void> {
  const { directory, model, tables = [] } = parts.at(-1)!;
  const found = await replays.sums(disk, chain, parts);
  for (const { table, rows, checksum } of tables) {
    const sum = found.get(table);
    if (rows === 0 ? sum === undefined : sum?.rows === rows && sum.checksum === checksum) continue;
    const what = `with those before it table ${table} of ${model} comes to ${sum?.rows ?? 0} rows with checksum ${sum?.checksum}, and there were ${rows} with ${checksum}`;
    throw new DamagedBackupError(directory, undefined, what);
  }
}

async function verifyRows(disk: Disk, directory: string, part: PodPart): Promise<void> {
  const tally = new RowTally(0);
  const rewriter = new RowRewriter((table) => table, Infinity, tally);
  for await (const frame of readChunks(disk, directory, part.files)) {
    await decoding(frame, async () => {
      for (const _ of rewriter.add(frame.bytes, 0, frame.bytes.length));
      rewriter.rest();
    });
  }
  const found = new Map(tally.sums().map((sum) => [sum.table, sum.rows]));
  for (const { table, rows } of part.tables ?? []) {
    if ((found.get(table) ?? 0) === rows) continue;
    const what = `table ${table} has ${found.get(table) ?? 0} rows, and the manifest says ${rows}`;
    throw new DamagedBackupError(directory, undefined, what);
  }
}

async function verifyEntries(disk: Disk, directory: string, part: PodPart): Promise<number> {
  const rewriter = new RowRewriter((table) => table, Infinity);
  for await (const frame of readChunks(disk, directory, part.files)) {
    await decoding(frame, async () => {
      for (const _ of rewriter.add(frame.bytes, 0, frame.bytes.length));
      rewriter.rest();
    });
  }
  return rewriter.ops;
}

async function verifySeries(
  disk: Disk,
  directory: string,
  part: PodPart,
): Promise<{ shards: number; points: number }> {
  const tally = new ExportTally();
  for await (const frame of readChunks(disk, directory, part.files)) {
    await decoding(frame, async () => {
      for (const _ of tally.add(frame.bytes));
    });
  }
  const sums = tally.sums();
  const listed = part.shards ?? [];
  const named = new Set(listed.map(({ shard }) => shard));
  if (sums.length !== listed.length || sums.some(({ number }) => !named.has(number))) {
    const what = `it has ${sums.length} shards of time series, and the manifest says ${listed.length}`;
    throw new DamagedBackupError(directory, undefined, what);
  }
  const points = sums.reduce((sum, { rows }) => sum + rows, 0);
  return { shards: listed.filter(({ included }) => included).length, points };
}

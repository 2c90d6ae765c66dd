// `polyrow import`: puts an RDB file, or a running Redis, into a running server.

import { randomBytes } from 'node:crypto';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { Command } from 'commander';
import { ExitError } from '../../server/lifecycle/exit-error.ts';
import { DatabaseMap } from '../import/database-map.ts';
import { importFile } from '../import/import-file.ts';
import { LiveImport, type LiveProgress } from '../import/import-live.ts';
import { importByScan, type ScanProgress } from '../import/import-scan.ts';
import { ImportView } from '../import/import-view.ts';
import { ReplicationRefused } from '../import/replica-link.ts';
import { type Endpoint, nameOf, parseEndpoint } from '../import/resp-link.ts';
import { StateFile } from '../import/state-file.ts';
import { Target } from '../import/target.ts';

interface ImportFlags {
  rdb?: string;
  from?: string;
  to: string;
  db: string[];
  state?: string;
  functions: boolean;
  scan?: true;
  untilCaughtUp?: true;
  json?: true;
}

const collect = (text: string, texts: string[]): string[] => [...texts, text];

export function importCommand(program: Command): void {
  const command = program
    .command('import')
    .description('Import an RDB file of Redis, or a running Redis, into a server.')
    .option('--rdb <file>', 'an RDB file')
    .option(
      '--from <url>',
      'a Redis, as redis://user@host:port; its password in POLYROW_FROM_PASSWORD',
    )
    .option(
      '--to <url>',
      'the server; its password in POLYROW_TO_PASSWORD',
      'redis://127.0.0.1:6379',
    )
    .option(
      '--db <from[:to]>',
      'only this database, under that number; may be given again',
      collect,
      [],
    )
    .option('--state <file>', 'where to note how far it is')
    .option('--no-functions', 'leave functions out')
    .option('--scan', 'copy keys one by one, without being a replica')
    .option('--until-caught-up', 'end when the import has caught up, without waiting for Ctrl-C')
    .option('--json', 'report progress in lines of JSON, for programs');
  command.action(async () => await run(command.opts<ImportFlags>()));
}

async function run(flags: ImportFlags): Promise<void> {
  const { rdb, from } = flags;
  if ((rdb === undefined) === (from === undefined)) {
    throw new ExitError('say what to import: --rdb FILE, or --from redis://host:port', 2);
  }
  const to = parseEndpoint(flags.to, process.env['POLYROW_TO_PASSWORD']);
  const target = await Target.open(to, new DatabaseMap(flags.db));
  const view = await ImportView.open(flags.json === true);
  try {
    if (rdb !== undefined) {
      const options = { state: flags.state, skipsFunctions: !flags.functions };
      await importFile(rdb, target, nameOf(to), view, options);
    } else {
      const source = parseEndpoint(from!, process.env['POLYROW_FROM_PASSWORD']);
      await importServer(source, to, target, view, flags);
    }
  } finally {
    view.end();
    target.close();
  }
  report(target, flags);
}

type ServerProgress = { live: LiveProgress } | { scan: ScanProgress | undefined };

async function importServer(
  source: Endpoint,
  to: Endpoint,
  target: Target,
  view: ImportView,
  flags: ImportFlags,
): Promise<void> {
  const name = `polyrow-import-${source.host}-${source.port}.json`;
  const state = new StateFile<ServerProgress>(flags.state ?? join(homedir(), `.${name}`), {
    source: nameOf(source),
    target: nameOf(to),
    databases: target.databases.text,
  });
  const known = state.load();
  if (flags.scan !== true && !(known !== undefined && 'scan' in known)) {
    const isResumed = known !== undefined && 'live' in known;
    const progress = isResumed ? known.live : await newProgress(target);
    try {
      return await follow(source, target, view, state, progress, isResumed, flags);
    } catch (error) {
      if (!(error instanceof ReplicationRefused) || progress.loaded !== undefined) throw error;
      view.note(
        `${nameOf(source)} accepts no replica (${error.message}): its keys are copied one by one, and writes to it meanwhile may be missing`,
      );
    }
  }
  const start = known !== undefined && 'scan' in known ? known.scan : undefined;
  await importByScan(source, target, view, start, (scan) => state.save({ scan }));
  if (flags.functions) await copyFunctions(source, target);
  state.remove();
}

async function newProgress(target: Target): Promise<LiveProgress> {
  const marker = `polyrow:import:${randomBytes(6).toString('hex')}`;
  return { startedEmpty: await target.isEmpty(), marker };
}

async function follow(
  source: Endpoint,
  target: Target,
  view: ImportView,
  state: StateFile<ServerProgress>,
  progress: LiveProgress,
  isResumed: boolean,
  flags: ImportFlags,
): Promise<void> {
  const live = new LiveImport(
    source,
    target,
    view,
    { save: (next: LiveProgress) => state.save({ live: next }), remove: () => state.remove() },
    progress,
    { skipsFunctions: !flags.functions, isResumed },
  );
  live.isEnding = flags.untilCaughtUp === true;
  const end = (): void => {
    if (live.isEnding) process.exit(130);
    live.isEnding = true;
    view.note('ending when nothing is missing; again to stop at once, and go on later');
  };
  process.on('SIGINT', end);
  process.on('SIGTERM', end);
  try {
    await live.run();
  } finally {
    process.off('SIGINT', end);
    process.off('SIGTERM', end);
  }
}

async function copyFunctions(source: Endpoint, target: Target): Promise<void> {
  const { RespLink } = await import('../import/resp-link.ts');
  const link = await RespLink.open(source);
  try {
    const payload = await link.ask(['FUNCTION', 'DUMP']);
    if (!Buffer.isBuffer(payload)) return;
    await target.call('FUNCTION', 'RESTORE', payload, 'REPLACE');
  } finally {
    link.close();
  }
}

function report(target: Target, flags: ImportFlags): void {
  const { tally, failed, failures } = target;
  if (flags.json === true) {
    process.stdout.write(`${JSON.stringify({ phase: 'done', ...tally, failed, failures })}\n`);
  } else {
    const parts = [`${tally.keys} keys`];
    if (tally.functions > 0) parts.push(`${tally.functions} function libraries`);
    if (tally.expired > 0) parts.push(`${tally.expired} had expired`);
    if (tally.unmapped > 0) parts.push(`${tally.unmapped} in other databases`);
    if (tally.modules > 0) parts.push(`${tally.modules} of modules left out`);
    process.stdout.write(`imported ${parts.join(', ')}\n`);
  }
  if (failed === 0) return;
  const rest = failed > failures.length ? [`and ${failed - failures.length} more`] : [];
  throw new ExitError([`${failed} could not be imported:`, ...failures, ...rest].join('\n  '));
}

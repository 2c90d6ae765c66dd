// `polyrow start`: the whole server in this process, until a signal.

import { type Command, Option } from 'commander';
import type { Endpoint } from '../../control/monitor/endpoint.ts';
import { printConfig } from '../../server/settings/print.ts';
import { type ResolvedConfig, resolveConfig } from '../../server/settings/resolve.ts';
import {
  onReloadSignal,
  onStopSignals,
  stopSignalsOfService,
} from '../../server/lifecycle/signals.ts';
import type { ProcessSet } from '../../server/lifecycle/process-set.ts';
import { servesTls } from '../../server/lifecycle/tls.ts';
import type { Planes } from '../../server/planes/plane-host.ts';
import type { Server } from '../../server/server.ts';
import { packageVersion } from '../../server/version.ts';
import type { ServingMessage } from '../processes/server-processes.ts';
import { wholeNumber } from './argument-values.ts';
import { addSettingFlags } from './setting-flags.ts';

interface StartFlags {
  config?: string;
  checkConfig?: true;
  printConfig?: true;
  processes: number;
  processSet?: ProcessSet;
}

/** The planes may be loading already. */
export function startCommand(program: Command, planes: Planes): void {
  const command = program
    .command('start', { isDefault: true })
    .description('Start the server. This is what happens without a command, too.')
    .option('--config <file>', 'TOML file with settings')
    .option('--check-config', 'say whether the configuration is right, and do nothing else')
    .option('--print-config', 'print the configuration in effect as TOML, and do nothing else')
    .option(
      '--processes <number>',
      'run so many processes behind the same ports, each with a part of the data',
      wholeNumber,
      1,
    )
    // Internal: settings that the first process passes to the others.
    .addOption(
      new Option('--process-set <json>')
        .argParser((text) => JSON.parse(text) as ProcessSet)
        .hideHelp(),
    )
    .allowExcessArguments(false);
  const flags = addSettingFlags(command);
  command.action(async (options: StartFlags) => {
    const resolved = resolveConfig({
      flags: flags(),
      environment: process.env,
      file: options.config,
    });
    if (options.printConfig) process.stdout.write(printConfig(resolved));
    else if (options.checkConfig) process.stdout.write('the configuration is right\n');
    else if (options.processes > 1) await serveTogether(resolved, options, flags());
    else await serve(resolved, planes, options.processSet);
  });
}

/** By processes of their own; this one only holds the ports. */
async function serveTogether(
  resolved: ResolvedConfig,
  { processes, config: file }: StartFlags,
  flags: Record<string, string>,
): Promise<void> {
  const { config } = resolved;
  const [{ createLogger }, { ServerProcesses }] = await Promise.all([
    import('../../server/logging.ts'),
    import('../processes/server-processes.ts'),
  ]);
  const logger = await createLogger(config['log.level'], config['log.format']);
  const words = Object.entries(flags).flatMap(([key, value]) => [`--${key}`, value]);
  if (file !== undefined) words.push('--config', file);
  const report = (message: string): void => logger.warn(message);
  const all = await ServerProcesses.open({ processes, config, words, report });
  let isStopping = false;
  const stopNow = (signal: string): void => {
    logger.info(`${signal}: stopping`);
    isStopping = true;
    void all.stop().then(() => {
      logger.info('stopped');
      process.exit(0);
    });
  };
  if (servesTls(config)) {
    onStopSignals(stopNow, undefined, undefined, stopSignalsOfService);
    onReloadSignal(() => all.reload());
  } else onStopSignals(stopNow);
  const endpoints = await all.start().catch((error: unknown) => {
    // The stop ends the process.
    if (isStopping) return new Promise<never>(() => {});
    throw error;
  });
  announce(config, endpoints, all);
  logger.info({ version: packageVersion(), endpoints, processes }, 'ready');
}

async function serve(
  resolved: ResolvedConfig,
  planes: Planes,
  processSet: ProcessSet | undefined,
): Promise<void> {
  const { config } = resolved;
  // Loaded only here: the other commands have no need of a server.
  const [{ createLogger }, { Server }] = await Promise.all([
    import('../../server/logging.ts'),
    import('../../server/server.ts'),
  ]);
  const logger = await createLogger(config['log.level'], config['log.format']);
  const version = packageVersion();
  const server = new Server({
    resolved,
    logger,
    version,
    planes,
    processSet,
    onFailure: (reason) => {
      logger.fatal(reason);
      void server.abandon().finally(() => process.exit(1));
    },
  });
  const started = server.start();
  let isStopping = false;
  const stopNow = (signal: string): void => {
    logger.info(`${signal}: stopping`);
    isStopping = true;
    server.stopWaiting();
    stop(server, started).then(
      () => {
        logger.info('stopped cleanly');
        process.exit(0);
      },
      (error: unknown) => {
        logger.fatal({ err: error }, 'could not stop cleanly: the next start will recover');
        process.exit(1);
      },
    );
  };
  if (servesTls(config)) {
    onStopSignals(stopNow, undefined, undefined, stopSignalsOfService);
    onReloadSignal(() => void server.reload());
  } else onStopSignals(stopNow);
  // The parent process has ended.
  if (processSet !== undefined)
    process.once('disconnect', () => stopNow('the first process ended'));
  const endpoints = await started.catch((error: unknown) => {
    // The stop ends the process.
    if (isStopping) return new Promise<never>(() => {});
    throw error;
  });
  if (processSet !== undefined) process.send!({ serves: endpoints } satisfies ServingMessage);
  announce(config, endpoints, server);
  logger.info({ version, endpoints, data: server.dataDirectory }, 'ready');
}

function announce(
  config: ResolvedConfig['config'],
  endpoints: readonly Endpoint[],
  { dataDirectory, newAdminToken }: { dataDirectory: string; newAdminToken: string | undefined },
): void {
  const about = [
    ...endpoints.map(({ name, url }) => [name, url] as const),
    ['data', dataDirectory] as const,
    ['fsync', config['wal.fsync']] as const,
  ];
  process.stdout.write(banner(packageVersion(), about, newAdminToken));
}

/** Stops the server. Waits for a start in progress, because a half-started server cannot be stopped cleanly. */
async function stop(server: Server, started: Promise<unknown>): Promise<void> {
  const isUp = await started.then(
    () => true,
    () => false,
  );
  if (isUp) await server.stop();
}

function banner(
  version: string,
  about: readonly (readonly [name: string, value: string])[],
  newToken: string | undefined,
): string {
  const lines = about.map(([name, value]) => `  ${name.padEnd(6)} ${value}`);
  if (newToken !== undefined) {
    lines.push(
      `  token  ${newToken}`,
      '         of an operator; shown only now, and kept in the data directory for the polyrow command',
    );
  }
  return `Polyrow ${version}\n${lines.join('\n')}\nReady. Ctrl-C stops it.\n`;
}

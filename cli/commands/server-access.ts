// How a command finds its server and its credentials: the flags of all such commands and their defaults.
//
//   where    --admin-url, POLYROW_ADMIN_URL; else the server that has the data directory open
//   token    --token-file, --token, POLYROW_ADMIN_TOKEN; else the data directory's own
//   HTTPS    --ca-file, POLYROW_CA_FILE; else, of the data directory's server, the certificate it left there

import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { resolveConfig } from '../../server/settings/resolve.ts';
import type { Config } from '../../server/settings/schema.ts';
import { didYouMean } from '../../server/settings/suggest.ts';
import { adminTokenFile } from '../../server/lifecycle/admin-token.ts';
import { lockHolder } from '../../server/lifecycle/data-directory.ts';
import { ExitError } from '../../server/lifecycle/exit-error.ts';
import { adminCertificateFile } from '../../server/lifecycle/tls.ts';
import { exitCodes } from '../../server/exit-codes.ts';
import { AdminClient, type ClientTls } from './admin-client.ts';
import { addSettingFlags } from './setting-flags.ts';

export interface AccessFlags {
  config?: string;
  json?: true;
  adminUrl?: string;
  token?: string;
  tokenFile?: string;
  caFile?: string;
  clientCertFile?: string;
  clientKeyFile?: string;
}

const usedSettings =
  /^(data-dir|admin\.token|admin\.token-file|redis\.databases|redis\.default-model)$/;
const hiddenSettings = /^(admin\.token|admin\.token-file|redis\.databases|redis\.default-model)$/;

/** Adds the flags by which a server is found; the function returned is asked for the settings. */
export function addAccessFlags(command: Command): () => Config {
  const group = 'Server:';
  const option = (flags: string, text: string): Option => new Option(flags, text).helpGroup(group);
  command
    .addOption(option('--json', 'answer in JSON, for programs').helpGroup('Options:'))
    .addOption(
      option(
        '--admin-url <url>',
        'its admin API; else that of the server on the data directory',
      ).env('POLYROW_ADMIN_URL'),
    )
    .addOption(option('--token-file <path>', 'file with the admin token'))
    .addOption(
      option('--token <token>', 'admin token; others can see it: rather POLYROW_ADMIN_TOKEN'),
    )
    .addOption(option('--ca-file <path>', 'authorities to trust').env('POLYROW_CA_FILE'))
    .addOption(
      option('--client-cert-file <path>', 'certificate to show').env('POLYROW_CLIENT_CERT_FILE'),
    )
    .addOption(option('--client-key-file <path>', 'its key').env('POLYROW_CLIENT_KEY_FILE'))
    .addOption(option('--config <file>', 'TOML file with settings'));
  const settings = addSettingFlags(command, (key) => usedSettings.test(key));
  for (const one of command.options) {
    if (hiddenSettings.test(one.name())) one.hideHelp();
  }
  return () => {
    const { config: file } = command.opts<AccessFlags>();
    return resolveConfig({ flags: settings(), environment: process.env, file }).config;
  };
}

/** The server of the data directory, or the one that was named; undefined when none runs there. */
export function findServer(flags: AccessFlags, config: Config): AdminClient | undefined {
  const token = tokenOf(flags, config);
  const tls = tlsOf(flags);
  if (flags.adminUrl !== undefined) {
    return new AdminClient({ url: checkUrl(flags.adminUrl), token: token ?? '', tls });
  }
  const path = resolve(config['data-dir']);
  const holder = lockHolder(path);
  if (holder === undefined) return undefined;
  const url = readIfThere(join(path, 'admin-endpoint'));
  if (url === undefined) {
    throw new ExitError(
      `process ${holder} has ${path} open but is not ready yet: try again`,
      exitCodes.unreachable,
    );
  }
  // Never sent anywhere but to the server it belongs to.
  const own = token ?? readIfThere(join(path, adminTokenFile)) ?? '';
  const certificate = readIfThere(join(path, adminCertificateFile));
  const known = tls.authorities === undefined && certificate !== undefined;
  return new AdminClient({
    url,
    token: own,
    tls: known ? { ...tls, serverCertificate: certificate } : tls,
  });
}

export function requireServer(flags: AccessFlags, config: Config): AdminClient {
  const client = findServer(flags, config);
  if (client !== undefined) return client;
  throw new ExitError(
    `no server runs on the data directory ${resolve(config['data-dir'])}: start it, or name another by --data-dir or --admin-url`,
    exitCodes.unreachable,
  );
}

/** Runs a command, given its arguments and flags. */
type ServerAction<F extends AccessFlags> = (
  client: AdminClient,
  flags: F,
  ...words: string[]
) => Promise<void>;

/** Gives a command the flags of access, and has it run with the server found. */
export function withServer<F extends AccessFlags>(
  command: Command,
  action: ServerAction<F>,
): Command {
  const config = addAccessFlags(command);
  return command.action(async () => {
    const flags = command.opts<F>();
    const client = requireServer(flags, config());
    try {
      await action(client, flags, ...(command.processedArgs as string[]));
    } catch (error) {
      throw await withSuggestion(error, client);
    }
  });
}

const suggestedAmong = 1000;

/** Adds a similar name to the error about an unknown tenant. */
async function withSuggestion(error: unknown, client: AdminClient): Promise<unknown> {
  if (!(error instanceof ExitError) || error.exitCode !== exitCodes.missing) return error;
  const [, name] = /^no tenant (\S+)$/.exec(error.message) ?? [];
  if (name === undefined) return error;
  const page = '/v1/tenants';
  const { tenants } = await client
    .get<{ tenants: { name: string }[] }>(page, { limit: suggestedAmong })
    .catch(() => ({ tenants: [] }));
  const suggestion = didYouMean(
    name,
    tenants.map((tenant) => tenant.name),
  );
  if (suggestion === '') return error;
  return new ExitError(`${error.message}.${suggestion}`, error.exitCode);
}

function tokenOf(flags: AccessFlags, config: Config): string | undefined {
  if (flags.tokenFile !== undefined) return readNamed(flags.tokenFile, '--token-file').trim();
  if (flags.token !== undefined) return flags.token;
  return config['admin.token'] === '' ? undefined : config['admin.token'];
}

function tlsOf({ caFile, clientCertFile, clientKeyFile }: AccessFlags): ClientTls {
  if ((clientCertFile === undefined) !== (clientKeyFile === undefined)) {
    throw new ExitError('--client-cert-file and --client-key-file go together', exitCodes.usage);
  }
  const tls: ClientTls = {};
  if (caFile !== undefined) tls.authorities = readNamed(caFile, '--ca-file');
  if (clientCertFile !== undefined && clientKeyFile !== undefined) {
    tls.certificate = readNamed(clientCertFile, '--client-cert-file');
    tls.key = readNamed(clientKeyFile, '--client-key-file');
  }
  return tls;
}

function checkUrl(url: string): string {
  if (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)) return url;
  throw new ExitError(
    `${url} is no URL of an admin API: it looks like http://127.0.0.1:7070`,
    exitCodes.usage,
  );
}

function readNamed(path: string, flag: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new ExitError(
      `cannot read the file of ${flag}: ${(error as Error).message}`,
      exitCodes.usage,
    );
  }
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    throw new ExitError(message, exitCodes.notAllowed);
  }
}

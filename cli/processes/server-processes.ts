// `polyrow start --processes N`: N nodes of a cluster of their own, in one data directory and
// behind the same ports. This process holds the listening sockets, starts the others, and restarts
// those that end by themselves.

import { copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Endpoint } from '../../control/monitor/endpoint.ts';
import {
  type AdminToken,
  adminTokenFile,
  openAdminToken,
} from '../../server/lifecycle/admin-token.ts';
import { DataDirectory } from '../../server/lifecycle/data-directory.ts';
import { ExitError } from '../../server/lifecycle/exit-error.ts';
import { readNodeIdentity } from '../../server/cluster/node-identity.ts';
import { processesDirectory, type ProcessSet } from '../../server/lifecycle/process-set.ts';
import { adminCertificateFile } from '../../server/lifecycle/tls.ts';
import type { Config } from '../../server/settings/schema.ts';
import { ClusterDirectory } from '../cluster/cluster-directory.ts';
import { KeptProcess } from '../cluster/kept-process.ts';
import { ServedSockets } from './served-sockets.ts';

interface ServerProcessesOptions {
  readonly processes: number;
  readonly config: Config;
  /** Settings that were given to this process as flags, and its `--config`. */
  readonly words: readonly string[];
  readonly report: (message: string) => void;
}

/** Message of a process that has started to serve. */
export interface ServingMessage {
  readonly serves: Endpoint[];
}

/** 0 to 2, and the channel to this process, are before them. */
const firstSocket = 4;
const mostProcesses = 20;

/** Each process may use as much of these as there is for one of them. */
const divided = [
  'memory.max-bytes',
  'kv.cache-bytes',
  'kv.write-buffer-bytes',
  'tsm.head-bytes',
  'redis.max-request-memory',
  'influx.max-request-memory',
] as const;
const leastShareBytes = 1024 * 1024;

export class ServerProcesses {
  readonly #options: ServerProcessesOptions;
  readonly #data: DataDirectory;
  readonly #directory: ClusterDirectory;
  readonly #sockets: ServedSockets;
  readonly #token: AdminToken;
  readonly #processes: readonly KeptProcess[];

  private constructor(
    options: ServerProcessesOptions,
    data: DataDirectory,
    directory: ClusterDirectory,
    sockets: ServedSockets,
  ) {
    this.#options = options;
    this.#data = data;
    this.#directory = directory;
    this.#sockets = sockets;
    this.#token = openAdminToken(data);
    this.#processes = directory.nodes.map((_, index) => this.#newProcess(index));
  }

  /** Not started. Throws `ExitError` when the data directory or a port cannot be had. */
  static async open(options: ServerProcessesOptions): Promise<ServerProcesses> {
    const { processes, config } = options;
    refuseSettings(config);
    if (processes > mostProcesses) {
      throw new ExitError(`--processes must be 1 to ${mostProcesses}`, 2);
    }
    const data = DataDirectory.open(config['data-dir']);
    try {
      refuseOthersData(data);
      const directory = await openDirectory(data, processes);
      return new ServerProcesses(options, data, directory, await ServedSockets.bind(config));
    } catch (error) {
      data.unlock();
      throw error;
    }
  }

  get dataDirectory(): string {
    return this.#data.path;
  }

  /** The operator's token, if this start has made it: it is shown once. */
  get newAdminToken(): string | undefined {
    return this.#token.isNew ? this.#token.secret : undefined;
  }

  #newProcess(index: number): KeptProcess {
    const { report } = this.#options;
    return new KeptProcess({
      name: `process ${index + 1}`,
      words: this.#words(index),
      stdio: () => ({
        stdio: ['ignore', 'ignore', 'inherit', 'ipc', ...this.#sockets.descriptors],
      }),
      takesEnvironment: true,
      restarts: true,
      onExit: report,
      isOver: () => undefined,
    });
  }

  #words(index: number): string[] {
    const { config, words, processes } = this.#options;
    const { nodes } = this.#directory;
    const { admin, cluster } = nodes[index]!;
    const seeds = nodes.map((node) => `127.0.0.1:${node.cluster}`).join(',');
    const set: ProcessSet = {
      processes,
      forms: index === 0,
      sockets: this.#sockets.inherited(firstSocket),
    };
    // The last one of a flag counts.
    return [
      ...words,
      ...['--data-dir', this.#directory.nodePath(index), ...this.#sockets.ports],
      ...['--admin.port', String(admin), '--cluster.listen', `127.0.0.1:${cluster}`],
      ...['--cluster.secret-file', this.#directory.secretFile, '--cluster.replicas', '1'],
      ...(index === 0 ? [] : ['--cluster.seeds', seeds]),
      ...divided.flatMap((key) => {
        const share = Math.max(Math.floor(config[key] / processes), leastShareBytes);
        return config[key] === 0 ? [] : [`--${key}`, String(share)];
      }),
      ...['--process-set', JSON.stringify(set)],
    ];
  }

  /** Resolves when all of them serve. Throws `ExitError` when one of them cannot start; the others are stopped then. */
  async start(): Promise<Endpoint[]> {
    try {
      const [first, ...others] = this.#processes.keys();
      const path = this.#directory.nodePath(first!);
      const forms = !existsSync(path) || readNodeIdentity(path) === undefined;
      const begun = this.#startOne(first!);
      // The first process waits for most of those that keep the metadata, once there are several.
      if (forms) await begun;
      const [endpoints] = await Promise.all([begun, ...others.map((one) => this.#startOne(one))]);
      const { url } = endpoints.find(({ name }) => name === 'admin')!;
      const certificate = join(path, adminCertificateFile);
      if (existsSync(certificate)) {
        copyFileSync(certificate, this.#data.file(adminCertificateFile));
      }
      this.#data.write('admin-endpoint', `${url}\n`);
      return endpoints;
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  async #startOne(index: number): Promise<Endpoint[]> {
    const path = this.#directory.nodePath(index);
    mkdirSync(path, { recursive: true, mode: 0o700 });
    // An operator has one token for all of them.
    writeFileSync(join(path, adminTokenFile), `${this.#token.secret}\n`, { mode: 0o600 });
    const one = this.#processes[index]!;
    one.start();
    const child = one.child!;
    return await new Promise((resolve, reject) => {
      child.once('message', ({ serves }: ServingMessage) => resolve(serves));
      child.once('exit', () =>
        reject(new ExitError(`process ${index + 1} did not start (${one.ended}): see above`)),
      );
    });
  }

  /** Makes all processes reload the settings that can change without a restart. */
  reload(): void {
    for (const { child } of this.#processes) child?.kill('SIGHUP');
  }

  /** All processes, in good order. */
  async stop(): Promise<void> {
    this.#data.remove('admin-endpoint');
    this.#data.remove(adminCertificateFile);
    await Promise.all(this.#processes.map((one) => one.stop()));
    this.#sockets.close();
    this.#data.unlock();
  }
}

function refuseSettings(config: Config): void {
  const { 'cluster.listen': listen, metadata, 'redis.cluster-mode': mode } = config;
  if (listen !== '') {
    throw new ExitError(
      '--processes makes a cluster of its own: it goes without cluster.listen',
      2,
    );
  }
  if (metadata !== 'embedded') {
    throw new ExitError('--processes keeps the metadata itself: metadata must be embedded', 2);
  }
  if (mode === 'redirect') {
    throw new ExitError(
      '--processes has one port for all: clients cannot be redirected (redis.cluster-mode)',
      2,
    );
  }
}

/** Another kind of server has used the directory. */
function refuseOthersData(data: DataDirectory): void {
  const other = ['metadata', 'cluster', 'cluster.json'].find((name) => existsSync(data.file(name)));
  if (other === undefined) return;
  throw new ExitError(
    `the data directory ${data.path} is not that of several processes: start it without --processes, or choose another one and take the data over (polyrow import --from)`,
  );
}

async function openDirectory(data: DataDirectory, processes: number): Promise<ClusterDirectory> {
  const path = data.file(processesDirectory);
  const known = ClusterDirectory.nodesIn(path);
  if (processes < known) {
    throw new ExitError(
      `the data directory ${data.path} is that of ${known} processes: say --processes ${known} or more`,
      2,
    );
  }
  return await ClusterDirectory.open(path, processes, undefined);
}

// How a server becomes a node: it continues in the cluster of its data directory, joins the one of its seeds, or waits until
// an operator forms one of it (`polyrow cluster init`). Until then the admin port has pages of its own, and no client is
// served.

import { AdminListener } from '../../control/admin/admin-listener.ts';
import { ClusterError } from '../../control/cluster/cluster-admin.ts';
import type { WaitingOptions } from '../../control/cluster/waiting-app.ts';
import type { AdminServerOptions } from '../../control/admin/admin-options.ts';
import type { DataDirectory } from '../lifecycle/data-directory.ts';
import { ExitError, listenError } from '../lifecycle/exit-error.ts';
import {
  clusterAddresses,
  clusterSecretFile,
  formatHostPort,
  rolesOf,
} from '../settings/cluster-addresses.ts';
import type { Config } from '../settings/schema.ts';
import type { ClusterMetadata, ClusterMetadataOptions } from './cluster-metadata.ts';
import { makeClusterSecret, readClusterSecret } from './cluster-secret.ts';
import { nodeAddresses } from './node-addresses.ts';
import { hasDataOfServer, noteTakeOver } from './take-over-mark.ts';

const answerMs = 1000;

interface EnterOptions {
  config: Config;
  data: DataDirectory;
  /** Options of the admin port while it waits. */
  admin: Omit<WaitingOptions, 'init'> & Pick<AdminServerOptions, 'tls'>;
  /** Whether the data directory is in a cluster. */
  isMember: boolean;
  /** A cluster is formed without being asked for. */
  forms?: boolean;
  open: (options: ClusterMetadataOptions) => Promise<ClusterMetadata>;
  /** Ends the wait. */
  signal: AbortSignal;
  report: ClusterMetadataOptions['report'];
  onFatal: (error: Error) => void;
}

export interface Entered {
  metadata: ClusterMetadata;
  secret: Buffer;
  /**
   * Port of the admin API while the server waited and afterwards: the operator's client that formed
   * the cluster uses it.
   */
  adminPort: number;
}

export async function enterCluster(options: EnterOptions): Promise<Entered> {
  const { config, data, admin } = options;
  let entry: Entry | undefined;
  let adminPort = config['admin.port'];
  const listener = new AdminListener(admin, async () => {
    const { waitingApp } = await import('../../control/cluster/waiting-app.ts');
    return await waitingApp({ ...admin, init: () => entry!.init() });
  });
  const host = config['admin.host'];
  try {
    const url = await listener.listen(host, adminPort);
    adminPort = Number(new URL(url).port);
    entry = new Entry({ ...options, config: { ...config, 'admin.port': adminPort } });
    data.write('admin-endpoint', `${url}\n`);
  } catch (error) {
    if (error instanceof ExitError) {
      await listener.close();
      throw error;
    }
    throw listenError(error, host, adminPort, 'admin.port');
  }
  try {
    return { ...(await entry.enter()), adminPort };
  } finally {
    admin.health.waitsFor = '';
    data.remove('admin-endpoint');
    // The request that formed the cluster gets its answer.
    await listener.close(answerMs);
  }
}

class Entry {
  readonly #options: EnterOptions;
  readonly #file: string;
  #secret: Buffer | undefined;
  /** Ends an attempt to join, as an operator forms a cluster. */
  readonly #formed = new AbortController();
  #isForming = false;

  constructor(options: EnterOptions) {
    this.#options = options;
    this.#file = clusterSecretFile(options.config);
    this.#secret = readClusterSecret(this.#file);
    const { isMember, config } = options;
    const needsSecret = isMember || config['cluster.seeds'] !== '';
    if (needsSecret && this.#secret === undefined) {
      throw new ExitError(
        `${this.#file} is missing: copy the secret of the cluster from another node (cluster.secret-file)`,
      );
    }
  }

  async enter(): Promise<Omit<Entered, 'adminPort'>> {
    const { isMember, config, signal } = this.#options;
    const { health } = this.#options.admin;
    const isJoining = config['cluster.seeds'] !== '';
    if (isMember) health.waitsFor = 'waiting for the metadata of the cluster';
    else if (isJoining) {
      health.waitsFor =
        'waiting to join a cluster of cluster.seeds; to form one: polyrow cluster init';
    } else health.waitsFor = 'not in a cluster yet: polyrow cluster init';
    if (!isMember) this.#options.report('info', health.waitsFor);
    if (isMember || isJoining) {
      try {
        return await this.#open('join', AbortSignal.any([signal, this.#formed.signal]));
      } catch (error) {
        if (signal.aborted || !this.#isForming) throw error;
      }
    } else {
      if (this.#options.forms === true) this.init();
      await this.#untilFormed();
    }
    health.waitsFor = 'forming a cluster';
    // A single server may have used the directory.
    noteTakeOver(this.#options.data.path);
    return await this.#open('form', signal);
  }

  /** Forms a cluster from this node, as requested by an operator. */
  init(): { secretFile: string } {
    if (this.#options.isMember) throw new ClusterError(409, 'this node is in a cluster already');
    if (this.#isForming)
      throw new ClusterError(409, 'a cluster of this node is being formed already');
    const roles = rolesOf(this.#options.config);
    if (!roles.includes('control')) {
      throw new ClusterError(409, 'a cluster is formed of a node with the role control');
    }
    if (!roles.includes('node') && hasDataOfServer(this.#options.data.path)) {
      throw new ClusterError(409, 'the directory has data of a server, for the role node to keep');
    }
    this.#secret ??= makeClusterSecret(this.#file);
    this.#isForming = true;
    this.#formed.abort(new Error('a cluster is formed of this node'));
    return { secretFile: this.#file };
  }

  #untilFormed(): Promise<void> {
    const { signal } = this.#options;
    return new Promise((resolve, reject) => {
      if (this.#isForming) resolve();
      this.#formed.signal.addEventListener('abort', () => resolve(), { once: true });
      if (signal.aborted) reject(signal.reason as Error);
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    });
  }

  async #open(begin: 'form' | 'join', signal: AbortSignal): Promise<Omit<Entered, 'adminPort'>> {
    const { config, data, open, report, onFatal } = this.#options;
    const { listen, seeds } = clusterAddresses(config)!;
    const secret = this.#secret!;
    const metadata = await open({
      directory: data.path,
      listen,
      secret,
      zone: config['cluster.zone'],
      roles: rolesOf(config),
      addresses: () => nodeAddresses(config),
      begin,
      seriesPartitions: config['influx.partitions'],
      seeds: seeds.map(formatHostPort),
      signal,
      onFatal,
      report,
    });
    return { metadata, secret };
  }
}

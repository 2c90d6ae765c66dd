// The cluster as a server opens it: waits until the data directory is in one, then has its metadata and this node's part.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { nodeRoles } from '../../contracts/cluster.ts';
import type { WaitingOptions } from '../../control/cluster/waiting-app.ts';
import type { AdminServerOptions } from '../../control/admin/admin-options.ts';
import type { DataDirectory } from '../lifecycle/data-directory.ts';
import { ExitError } from '../lifecycle/exit-error.ts';
import { type Metadata, metadataSamples } from '../lifecycle/metadata.ts';
import { type ProcessSet, processesDirectory } from '../lifecycle/process-set.ts';
import type { Planes } from '../planes/plane-host.ts';
import type { ReplicatedDocumentStore } from '../../control/metadata/replicated/replicated-document-store.ts';
import { rolesOf } from '../settings/cluster-addresses.ts';
import type { LiveConfig } from '../settings/live-config.ts';
import type { ClusterMetadata } from './cluster-metadata.ts';
import { ClusterNode } from './cluster-node.ts';
import { enterCluster } from './enter-cluster.ts';
import { readNodeIdentity } from './node-identity.ts';
import { openClusterMetadata } from './open-cluster-metadata.ts';

interface OpenNodeOptions {
  config: LiveConfig;
  data: DataDirectory;
  planes: Planes;
  /** Absent of a server of one process. */
  processSet: ProcessSet | undefined;
  admin: Omit<WaitingOptions, 'init'> & Pick<AdminServerOptions, 'tls'>;
  signal: AbortSignal;
  report: (level: 'info' | 'warn' | 'error', message: string, fields?: object) => void;
  onFatal: (error: Error) => void;
}

interface OpenedNode extends Metadata {
  cluster: ClusterMetadata;
  node: ClusterNode;
  /** Port of the admin API, which listens there from now on. */
  adminPort: number;
}

/**
 * Processes of one server: when one of them ends, its connections close at once; when one hangs, no other has its data. So
 * fewer pings are enough, and an idle server wakes up less often. The next leader of the metadata is elected before shares of
 * limits are given up (`shareLeaseMs`).
 */
const processesSilenceMs = 4000;

/** Opens a node with `cluster.listen` configured. */
export async function openNode(options: OpenNodeOptions): Promise<OpenedNode> {
  const { config, data, planes, processSet, admin, signal, report, onFatal } = options;
  if (processSet !== undefined && rolesOf(config.all()).length < nodeRoles.length) {
    throw new ExitError('roles must be all of them where a server has several processes');
  }
  const silenceMs = processSet && processesSilenceMs;
  const { metadata, secret, adminPort } = await enterCluster({
    config: config.all(),
    data,
    admin,
    isMember: readNodeIdentity(data.path) !== undefined,
    forms: processSet?.forms === true,
    open: (more) =>
      openClusterMetadata({
        ...more,
        silenceMs,
        replaceVoterMs: () => config.get('cluster.rebuild-after') * 1000,
      }),
    signal,
    report,
    onFatal,
  });
  const warn = (message: string): void => report('warn', message);
  const node = await ClusterNode.open({
    metadata,
    secret,
    config,
    planes,
    leastNodes: processSet?.processes ?? 1,
    silenceMs,
    report: warn,
  });
  // `openClusterMetadata` returns this store.
  const store = metadata.store as ReplicatedDocumentStore;
  return {
    store,
    isShared: true,
    samples: () => [...metadataSamples(store.status), ...node.samples()],
    cluster: metadata,
    adminPort,
    node,
  };
}

/**
 * Without `cluster.listen`, the metadata of the directory would be those from before it became a
 * node's.
 */
export function refuseNodeAlone(data: DataDirectory): void {
  const identity = readNodeIdentity(data.path);
  if (existsSync(data.file(processesDirectory))) {
    throw new ExitError(
      `the data directory ${data.path} is that of several processes: start it with --processes`,
    );
  }
  if (identity === undefined) return;
  throw new ExitError(
    `the data directory ${data.path} is that of node ${identity.node} of a cluster: start it with --cluster.listen (${join(data.path, 'cluster')} says so)`,
  );
}

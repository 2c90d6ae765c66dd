// The directory of a cluster on one machine: a directory for each node, the secret, and a file with the ports, so that the
// next start brings the same cluster up again.

import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join, resolve } from 'node:path';
import { ExitError } from '../../server/lifecycle/exit-error.ts';

/** Ports of a node; `cluster` is the first of three. */
export interface NodePorts {
  redis: number;
  influx: number;
  admin: number;
  cluster: number;
}

const fileName = 'cluster.json';
/** With a base port, each node has so many from there on. */
const portsPerNode = 10;
const clusterPortCount = 3;
/**
 * The last port of a node is of no node. The process that runs the cluster listens on it for as long as it lives, so that
 * another cluster which looks for free ports does not take those of a node that has yet to start, or starts again.
 */
const guardOffset = portsPerNode - 1;
const mostNodes = 20;

export class ClusterDirectory {
  readonly path: string;
  readonly nodes: readonly NodePorts[];

  private constructor(path: string, nodes: readonly NodePorts[]) {
    this.path = path;
    this.nodes = nodes;
  }

  /**
   * Creates the directory if missing. `nodes` may be more than the directory has; undefined means
   * the existing number, or 3. Throws `ExitError` for fewer, and for a base port other than that of
   * the first start.
   */
  static async open(
    directory: string,
    nodes: number | undefined,
    basePort: number | undefined,
  ): Promise<ClusterDirectory> {
    const path = resolve(directory);
    mkdirSync(path, { recursive: true, mode: 0o700 });
    const known = read(path);
    const wanted = nodes ?? Math.max(known.length, 3);
    if (wanted < 1 || wanted > mostNodes)
      throw new ExitError(`--nodes must be 1 to ${mostNodes}`, 2);
    if (wanted < known.length) {
      throw new ExitError(
        `${path} is a cluster of ${known.length} nodes: say --nodes ${known.length} or more, and take nodes away by polyrow node drain and remove`,
        2,
      );
    }
    const all = [...known];
    while (all.length < wanted) {
      const base = basePort ?? all[0]?.redis;
      const next = base === undefined ? undefined : portsFrom(base, all.length);
      const isNext = next !== undefined && (basePort !== undefined || (await reserve(next)));
      all.push(isNext ? next : await freePorts(all));
    }
    if (basePort !== undefined && all[0]!.redis !== basePort) {
      throw new ExitError(`the ports of ${path} begin at ${all[0]!.redis}, not at ${basePort}`, 2);
    }
    if (all.length > known.length) write(path, all);
    // These are its own in any case; the guards of those that were chosen just now are held already.
    for (const { redis } of all) await listenOn(redis + guardOffset);
    return new ClusterDirectory(path, all);
  }

  /** How many nodes a directory has; 0 for one that is not there. */
  static nodesIn(directory: string): number {
    return read(directory).length;
  }

  nodePath(index: number): string {
    return join(this.path, `node-${index + 1}`);
  }

  /** A port of a node, which has not started, that another program listens on. */
  async usedPort(index: number): Promise<number | undefined> {
    for (const port of portsOf(this.nodes[index]!)) if (!(await isFree(port))) return port;
    return undefined;
  }

  logFile(index: number): string {
    return join(this.path, `node-${index + 1}.log`);
  }

  get secretFile(): string {
    return join(this.path, 'cluster-secret');
  }
}

function portsFrom(basePort: number, index: number): NodePorts {
  const redis = basePort + index * portsPerNode;
  if (redis + portsPerNode > 65536)
    throw new ExitError(`there are no ${portsPerNode} ports from ${redis} on`, 2);
  return { redis, influx: redis + 1, admin: redis + 2, cluster: redis + 3 };
}

/** Below those that the system gives out for a while and then to others. */
const firstPort = 20_000;
const endOfPorts = 32_000;
const mostAttempts = 100;

async function freePorts(others: readonly NodePorts[]): Promise<NodePorts> {
  const taken = new Set(others.map(({ redis }) => redis));
  for (let attempt = 0; attempt < mostAttempts; attempt++) {
    const blocks = Math.floor((endOfPorts - firstPort) / portsPerNode);
    const redis = firstPort + Math.floor(Math.random() * blocks) * portsPerNode;
    if (taken.has(redis)) continue;
    const ports = portsFrom(redis, 0);
    if (await reserve(ports)) return ports;
  }
  throw new ExitError('there are no free ports: name some by --base-port');
}

/** Holds the ports for this process; false where one of them is in use or another cluster holds them. */
async function reserve(ports: NodePorts): Promise<boolean> {
  const guard = await listenOn(ports.redis + guardOffset);
  if (guard === undefined) return false;
  const areFree = await Promise.all(portsOf(ports).map(isFree));
  if (areFree.every(Boolean)) return true;
  guard.close();
  return false;
}

function portsOf({ redis, influx, admin, cluster }: NodePorts): number[] {
  const ofCluster = Array.from({ length: clusterPortCount }, (_, i) => cluster + i);
  return [redis, influx, admin, ...ofCluster];
}

async function isFree(port: number): Promise<boolean> {
  const server = await listenOn(port);
  if (server === undefined) return false;
  await new Promise((closed) => server.close(closed));
  return true;
}

/** Undefined when the port is in use. The process ends although the server listens. */
function listenOn(port: number): Promise<Server | undefined> {
  const server = createServer((socket) => socket.destroy()).unref();
  return new Promise((settle) => {
    server.once('error', () => settle(undefined));
    server.listen({ host: '127.0.0.1', port }, () => settle(server));
  });
}

function read(path: string): NodePorts[] {
  const file = join(path, fileName);
  if (!existsSync(file)) return [];
  try {
    const { nodes } = JSON.parse(readFileSync(file, 'utf8')) as { nodes: NodePorts[] };
    if (nodes.every((node) => Object.values(node).every(Number.isSafeInteger))) return nodes;
  } catch {
    // As one that says something else.
  }
  throw new ExitError(`${file} is damaged: it should hold the ports of the nodes`);
}

function write(path: string, nodes: readonly NodePorts[]): void {
  const file = join(path, fileName);
  writeFileSync(`${file}.tmp`, `${JSON.stringify({ nodes }, undefined, 2)}\n`, { flush: true });
  renameSync(`${file}.tmp`, file);
}

// Assignment of a node's number: the new node asks any node of the cluster, which asks the leader
// of the metadata, which records the new node. A node that asks again, because it missed the
// answer, gets the same number.

import type { LinkContext } from '../../cluster-links/cluster-link.ts';
import {
  clusterLevel,
  type NodeAddresses,
  type NodeDefinition,
  type NodeRole,
  nodeRoles,
} from '../../contracts/cluster.ts';
import {
  type DocumentStore,
  type Json,
  MetadataUnavailable,
  RevisionConflict,
  type StoredDocument,
} from '../../control/metadata/document-store.ts';
import { joinPurpose } from '../../universal-row/protocol/hello.ts';
import { parseHostPort } from '../settings/cluster-addresses.ts';
import { ControlConnection } from './control-client.ts';
import { ControlError } from './cluster-metadata.ts';
import { type KnownPeer, maxNodes } from './node-identity.ts';
import { divisionProblem, seriesDivision } from './series-division.ts';

export const nodesCollection = 'nodes';
const joinQuestion = joinPurpose;

interface JoinRequest {
  joinId: string;
  zone: string;
  roles?: readonly NodeRole[];
  addresses: NodeAddresses;
  /** Level of its build; the first build does not send it. */
  level?: number;
  /** Partitions of the time series that its settings ask for; 0 or absent: as the cluster has it. */
  seriesPartitions?: number;
}

interface JoinAnswer {
  cluster: number;
  node: number;
  peers: KnownPeer[];
}

const askMs = 5000;
const pauseMs = 500;
const reportEveryMs = 15_000;

interface JoinOptions {
  context: LinkContext;
  seeds: readonly string[];
  request: JoinRequest;
  signal: AbortSignal | undefined;
  report: (level: 'info' | 'warn' | 'error', message: string) => void;
}

/** Asks seeds until one answers that is in a cluster. Rejects when the cluster refuses the node, or the signal says so. */
export async function joinCluster(options: JoinOptions): Promise<JoinAnswer> {
  const { seeds, signal, report } = options;
  if (seeds.length === 0) throw new Error('a node that is to join a cluster needs seeds');
  let reportAt = performance.now() + pauseMs * 4;
  for (let turn = 0; ; turn++) {
    signal?.throwIfAborted();
    const seed = seeds[turn % seeds.length]!;
    let problem: string;
    try {
      return await askSeed(options, seed);
    } catch (error) {
      const { message, code } = error as Error & { code?: string };
      if (code === 'REMOVED' || code === 'DIVISION') throw error;
      problem = message;
    }
    if (performance.now() >= reportAt) {
      reportAt = performance.now() + reportEveryMs;
      report('info', `waiting for a node of the cluster: ${seed}: ${problem}`);
    }
    if (turn % seeds.length === seeds.length - 1) await pause(pauseMs, signal);
  }
}

async function askSeed({ context, request }: JoinOptions, seed: string): Promise<JoinAnswer> {
  const address = parseHostPort(seed);
  if (address === undefined) throw new Error(`${seed} is not HOST:PORT`);
  const connection = new ControlConnection(context, address, joinPurpose);
  try {
    const body = Buffer.from(JSON.stringify(request));
    const answer = await connection.ask(joinQuestion, body, askMs);
    return JSON.parse(answer.toString()) as JoinAnswer;
  } finally {
    connection.close();
  }
}

/** Gives the node its number. `store` is of the node that was asked: writes go to the leader by themselves. */
export async function admitNode(
  store: DocumentStore,
  cluster: number,
  request: JoinRequest,
): Promise<JoinAnswer> {
  for (;;) {
    const nodes = (await store.list(nodesCollection)).map(definitionOf);
    const known = nodes.find(({ joinId }) => joinId === request.joinId);
    if (known?.state === 'removed') {
      const message = `node ${known.node} was removed from the cluster`;
      throw new ControlError(message, 'refused', 'REMOVED');
    }
    const { level = 1, roles = nodeRoles, seriesPartitions = 0, ...rest } = request;
    const problem = divisionProblem(seriesPartitions, await seriesDivision(store));
    if (problem !== undefined) throw new ControlError(problem, 'refused', 'DIVISION');
    const needed = clusterLevel(nodes);
    if (nodes.length > 0 && level < needed) {
      const message = `the cluster is of level ${needed}, and the node of an earlier release, of level ${level}`;
      throw new ControlError(message, 'refused');
    }
    const node = known?.node ?? Math.max(0, ...nodes.map((one) => one.node)) + 1;
    if (node > maxNodes) throw new ControlError('the cluster has no numbers left', 'refused');
    if (known === undefined && !(await isWritten(store, { ...rest, roles, level, node }))) continue;
    const peers = nodes
      .filter((one) => one.state !== 'removed' && one.node !== node)
      .map((one): KnownPeer => ({ node: one.node, control: one.addresses.control }));
    return { cluster, node, peers };
  }
}

async function isWritten(
  store: DocumentStore,
  {
    node,
    joinId,
    zone,
    roles,
    addresses,
    level,
  }: Required<Omit<JoinRequest, 'seriesPartitions'>> & { node: number },
): Promise<boolean> {
  const definition: NodeDefinition = {
    ...{ node, zone, roles, state: 'joining', addresses, incarnation: 0, joinId },
    build: { level, incarnation: 0 },
  };
  try {
    await writeNode(store, definition, 0);
    return true;
  } catch (error) {
    if (error instanceof RevisionConflict) return false;
    throw error;
  }
}

export async function writeNode(
  store: DocumentStore,
  definition: NodeDefinition,
  expected: number,
): Promise<void> {
  const body = definition as unknown as Json;
  const id = String(definition.node);
  await store.write([{ collection: nodesCollection, id, body, expected }]);
}

/** Changes the document of a node, if it is there and `change` gives another one. */
export async function changeNode(
  store: DocumentStore,
  node: number,
  change: (definition: NodeDefinition) => NodeDefinition | undefined,
): Promise<void> {
  for (;;) {
    const found = await store.get(nodesCollection, String(node));
    const changed = found && change(definitionOf(found));
    if (changed === undefined) return;
    try {
      await writeNode(store, changed, found!.revision);
      return;
    } catch (error) {
      if (!(error instanceof RevisionConflict)) throw error;
    }
  }
}

export function definitionOf({ body }: StoredDocument): NodeDefinition {
  return body as unknown as NodeDefinition;
}

/** A join request as it came from a peer. Throws `ControlError`. */
export function checkedRequest(body: Json): JoinRequest {
  const {
    joinId,
    zone,
    roles = nodeRoles,
    addresses,
    level = 1,
    seriesPartitions = 0,
  } = (body ?? {}) as Partial<Record<string, unknown>>;
  const places = (addresses ?? {}) as Partial<Record<string, unknown>>;
  const names = ['control', 'redis', 'influx', 'redisClients', 'influxClients', 'admin'];
  const isRight =
    typeof joinId === 'string' &&
    /^[0-9a-f]{32}$/.test(joinId) &&
    typeof zone === 'string' &&
    areRoles(roles) &&
    Number.isSafeInteger(level) &&
    Number.isSafeInteger(seriesPartitions) &&
    names.every((name) => typeof places[name] === 'string') &&
    parseHostPort(places['control'] as string) !== undefined;
  if (!isRight) throw new ControlError('that is no request to join', 'refused');
  return {
    ...{ joinId, zone, roles, addresses: places as unknown as NodeAddresses },
    level: level as number,
    seriesPartitions: seriesPartitions as number,
  };
}

function areRoles(roles: unknown): roles is NodeRole[] {
  const known: readonly unknown[] = nodeRoles;
  return Array.isArray(roles) && roles.length > 0 && roles.every((role) => known.includes(role));
}

/** Whether a call to the metadata may be made again later. */
export function isOutage(error: unknown): boolean {
  return error instanceof MetadataUnavailable;
}

/** Rejects with the signal's reason when it says so meanwhile. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const aborted = (): void => {
      clearTimeout(timer);
      reject(signal!.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', aborted);
      resolve();
    }, ms);
    signal?.addEventListener('abort', aborted, { once: true });
  });
}

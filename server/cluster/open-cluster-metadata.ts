// Makes a node a part of its cluster: its identity, its links, its replica of the metadata.
//
//   form    this directory becomes the only node of a new cluster, with the documents that it has
//   join    a node of the cluster gives it a number, and the leader takes it in
//   go on   it was in the cluster before

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { LinkContext } from '../../cluster-links/cluster-link.ts';
import { ClusterListener } from '../../cluster-links/cluster-listener.ts';
import {
  levelOf,
  type NodeAddresses,
  type NodeDefinition,
  nodeRoles,
  ownLevel,
} from '../../contracts/cluster.ts';
import { EmbeddedDocumentStore } from '../../control/metadata/embedded-document-store.ts';
import { fillStore } from '../../control/metadata/move-documents.ts';
import { changeNode, isOutage, joinCluster, nodesCollection, pause, writeNode } from './join.ts';
import type { ClusterMetadata, ClusterMetadataOptions } from './cluster-metadata.ts';
import { ClusterMember } from './cluster-member.ts';
import { IdentityFile } from './node-identity.ts';
import { ExitError } from '../lifecycle/exit-error.ts';
import { divisionOf, divisionProblem, recordDivision, seriesDivision } from './series-division.ts';

const reportEveryMs = 15_000;
const lookMs = 3000;

/**
 * Resolves when the node has a copy of the metadata that it may serve with. Rejects when it cannot listen, when the
 * cluster refuses the node, or when the signal says so; everything is closed then.
 */
export async function openClusterMetadata(
  options: ClusterMetadataOptions,
): Promise<ClusterMetadata> {
  const { directory, listen, secret, silenceMs, report } = options;
  const identity = IdentityFile.open(directory);
  const context: LinkContext = {
    identity: { cluster: '', node: '', incarnation: 0, level: 1 },
    secret,
    silenceMs,
  };
  const listener = new ClusterListener(context, report);
  await listener.listen(listen.host, listen.port);
  let member: ClusterMember | undefined;
  try {
    const addresses = options.addresses(listener.port);
    await begin(options, identity, context, addresses);
    member = await ClusterMember.open({ ...options, identityFile: identity, context, listener });
    if (identity.record.isForming) await carryOver(options, identity, member, addresses);
    else await becomeCurrent(options, member);
    const division = await seriesDivision(member.store);
    const problem = divisionProblem(options.seriesPartitions ?? 0, division);
    if (problem !== undefined) throw new ExitError(problem);
    void announce(options, member, addresses);
    return member;
  } catch (error) {
    if (member) await member.close();
    else await listener.close();
    throw error;
  }
}

/** The node gets its number, unless it has one. */
async function begin(
  { begin: how, seeds, zone, roles = nodeRoles, signal, report, ...given }: ClusterMetadataOptions,
  identity: IdentityFile,
  context: LinkContext,
  addresses: NodeAddresses,
): Promise<void> {
  if (identity.isMember) return;
  if (how === 'form') {
    // Before there is a cluster.
    divisionOf(given.directory, given.seriesPartitions ?? 0);
    identity.form();
    report('info', `a new cluster is formed; this is node 1`);
    return;
  }
  const { seriesPartitions = 0 } = given;
  const { joinId } = identity.record;
  const request = { joinId, zone, roles, addresses, level: ownLevel, seriesPartitions };
  const others = seeds.filter((seed) => seed !== addresses.control);
  const answer = await joinCluster({ context, seeds: others, request, signal, report });
  identity.joined(answer.cluster, answer.node, answer.peers);
  report('info', `this is node ${answer.node} of the cluster`);
}

/** The documents of the single server that this directory was become the first ones of the cluster. */
async function carryOver(
  { directory, zone, roles = nodeRoles, signal, report, seriesPartitions }: ClusterMetadataOptions,
  identity: IdentityFile,
  { store }: ClusterMember,
  addresses: NodeAddresses,
): Promise<void> {
  while (!(await store.isLatest(lookMs))) signal?.throwIfAborted();
  const path = join(directory, 'metadata');
  if (existsSync(path)) {
    const embedded = await EmbeddedDocumentStore.open(path);
    const { documents } = await embedded.snapshot();
    await embedded.close();
    await fillStore(store, documents);
    report('info', `${documents.length} metadata documents are the cluster's now`);
  }
  await recordDivision(store, divisionOf(directory, seriesPartitions ?? 0));
  const { node, joinId, incarnation } = identity.record;
  const state = 'up';
  const found = await store.get(nodesCollection, String(node));
  await writeNode(
    store,
    {
      ...{ node, zone, roles, state, addresses, incarnation, joinId },
      build: { level: ownLevel, incarnation },
    },
    found?.revision ?? 0,
  );
  identity.formed();
}

/** Waits until the copy is the latest; one that knows this node as a part of the cluster is good enough. */
async function becomeCurrent(
  { signal, report }: ClusterMetadataOptions,
  member: ClusterMember,
): Promise<void> {
  let reportAt = performance.now() + lookMs * 2;
  while (!(await member.store.isLatest(lookMs))) {
    signal?.throwIfAborted();
    await member.throwIfRemoved();
    const own = member.nodes().find(({ node }) => node === member.identity.node);
    if (own !== undefined && own.state !== 'joining') return;
    if (performance.now() < reportAt) continue;
    reportAt = performance.now() + reportEveryMs;
    report('info', 'waiting for the metadata of the cluster');
  }
}

/** Announces this start of the node to the others. Retries without a time limit. */
async function announce(
  { zone, roles = nodeRoles, report }: ClusterMetadataOptions,
  member: ClusterMember,
  addresses: NodeAddresses,
): Promise<void> {
  const { node, incarnation } = member.identity;
  const isSame = (one: NodeDefinition): boolean =>
    one.state !== 'joining' &&
    one.zone === zone &&
    (one.roles ?? nodeRoles).join() === roles.join() &&
    one.incarnation === incarnation &&
    levelOf(one) === ownLevel &&
    JSON.stringify(one.addresses) === JSON.stringify(addresses);
  while (!member.isClosed) {
    try {
      await changeNode(member.store, node, (one) => {
        if (one.state === 'removed' || isSame(one)) return undefined;
        const state = one.state === 'joining' ? 'up' : one.state;
        return {
          ...{ ...one, state, zone, roles, addresses, incarnation },
          build: { level: ownLevel, incarnation },
        };
      });
      return;
    } catch (error) {
      if (!isOutage(error)) {
        report('error', `this node cannot tell others where it is: ${(error as Error).message}`);
        return;
      }
    }
    await pause(500);
  }
}

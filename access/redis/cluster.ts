// Cluster mode: restrictions of a cluster, and the commands about it. A node either owns all slots
// and forwards commands to their leaders; or it redirects clients to the leaders (cluster-map.ts).

import { createHash } from 'node:crypto';
import type { Arguments } from '../../universal-row/arguments.ts';
import { isWrite } from '../../universal-row/command.ts';
import { hashSlot } from '../../universal-row/crc16.ts';
import type { Client } from './client.ts';
import { keyWords } from './commands/key-words.ts';
import type { CommandEntry } from './commands/registry.ts';

/** Slots of a queue of commands, or of one command: none, or several. */
export const noSlot = -1;
const manySlots = -2;

const crossSlot = "CROSSSLOT Keys in request don't hash to the same slot";

/** Stays the same over restarts, as it is made of where the server is. */
export function nodeIdOf(directory: string): string {
  return createHash('sha1').update(directory).digest('hex');
}

/** The slot of the keys, or shard channels, of a command. */
export function slotOf(entry: CommandEntry, args: Arguments): number {
  let slot = noSlot;
  for (const word of keyWords(entry.spec, args)) {
    const own = hashSlot(args.buf, args.starts[word]!, args.lens[word]!);
    if (slot !== noSlot && own !== slot) return manySlots;
    slot = own;
  }
  return slot;
}

/**
 * Error of a command that may not run in a cluster, if so. Queued commands count with their
 * transaction.
 */
export function clusterRefusal(
  client: Client & { readonly transaction: { readonly slots: { only: number } } | undefined },
  entry: CommandEntry,
  args: Arguments,
): string | undefined {
  const { transaction } = client;
  if (entry.spec.name === 'exec') {
    if (transaction?.slots.only !== manySlots) return undefined;
    client.endTransaction();
    return crossSlot;
  }
  const unfit = otherDatabase(entry.fullName, args);
  if (unfit !== undefined) return unfit;
  const slot = slotOf(entry, args);
  if (slot === manySlots) return crossSlot;
  const moved = slot === noSlot ? undefined : movedTo(client, entry, slot);
  if (moved !== undefined) return moved;
  if (transaction !== undefined && slot !== noSlot && !entry.immediate) {
    if (transaction.slots.only === noSlot) transaction.slots.only = slot;
    else if (transaction.slots.only !== slot) transaction.slots.only = manySlots;
  }
  return undefined;
}

function movedTo(client: Client, entry: CommandEntry, slot: number): string | undefined {
  const { clusterMap } = client.server;
  const isOfRows = entry.run !== undefined || entry.spec.name === 'watch';
  if (clusterMap === undefined || !isOfRows) return undefined;
  if (client.readsAnywhere && !isWrite(entry.action)) return undefined;
  const member = clusterMap.elsewhere(client.table, slot);
  return member && `MOVED ${slot} ${member.host}:${member.port}`;
}

function otherDatabase(name: string, args: Arguments): string | undefined {
  switch (name) {
    case 'select':
      return args.is(1, '0') ? undefined : 'ERR SELECT is not allowed in cluster mode';
    case 'swapdb':
      return 'ERR SWAPDB is not allowed in cluster mode';
    case 'move':
      return 'ERR MOVE is not allowed in cluster mode';
    case 'copy':
      return copiesElsewhere(args)
        ? 'ERR Copying to another database is not allowed in cluster mode'
        : undefined;
    case 'sort':
    case 'sort_ro':
      return sortsByOthers(args);
  }
  return undefined;
}

function copiesElsewhere(args: Arguments): boolean {
  for (let i = 3; i < args.count - 1; i++) {
    if (args.is(i, 'DB')) return !args.is(i + 1, '0');
  }
  return false;
}

const star = 42;

/** Patterns that name keys: any of them may be elsewhere. */
function sortsByOthers(args: Arguments): string | undefined {
  for (let i = 2; i < args.count - 1; i++) {
    const isBy = args.is(i, 'BY');
    if (!isBy && !args.is(i, 'GET')) continue;
    if (isBy && !args.bytes(i + 1).includes(star)) continue;
    return `ERR ${isBy ? 'BY' : 'GET'} option of SORT denied in Cluster mode.`;
  }
  return undefined;
}

/** How a client reaches this node: by the address that it has used. */
export interface ClusterNode {
  id: string;
  host: string;
  port: number;
}

export function nodeFor({ server, localAddress }: Client): ClusterNode {
  const colon = localAddress.lastIndexOf(':');
  const host = localAddress.slice(0, colon).replace(/^::ffff:/, '');
  return {
    id: server.clusterId!,
    host,
    port: Number(localAddress.slice(colon + 1)) || server.port,
  };
}

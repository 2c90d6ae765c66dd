// Numbers of clients, as clients see them: in a cluster they have the number of the node in their high bits.

import { clientOfNode, numberAtNode } from '../../universal-row/command.ts';
import type { Client, ClientServer } from './client.ts';

/** 0 of a server on its own. */
export function nodeOf({ elsewhere }: Pick<ClientServer, 'elsewhere'>): number {
  return elsewhere?.node ?? 0;
}

export function wideIdOf({ id, server }: Pick<Client, 'id' | 'server'>): number {
  return clientOfNode(nodeOf(server), id);
}

/** The number at this node; undefined of a client of another one. */
export function ownIdOf(id: number, server: ClientServer): number | undefined {
  return numberAtNode(id, nodeOf(server));
}

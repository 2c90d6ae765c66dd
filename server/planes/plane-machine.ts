// What the replicas of a plane run on: the machine, or a simulated one in tests.

import { ClusterListener, type LinkListener } from '../../cluster-links/cluster-listener.ts';
import type { LinkContext } from '../../cluster-links/cluster-link.ts';
import { dialLink } from '../../cluster-links/dial.ts';
import { bootId } from '../../storage-node/disk/boot-id.ts';
import { realDisk } from '../../storage-node/disk/real-disk.ts';
import type { RaftHostOptions } from '../../storage-node/replicator/raft/raft-host.ts';
import type { Disk } from '../../universal-row/environment.ts';

export interface NodePlace {
  readonly host: string;
  readonly port: number;
}

type Report = (level: 'info' | 'warn' | 'error', message: string, fields?: object) => void;

export interface PlaneMachine {
  readonly disk: Disk;
  /** Opens a link to another node. */
  readonly dial: typeof dialLink;
  /** Accepts links of other nodes at an address. */
  listen(context: LinkContext, place: NodePlace, report: Report): Promise<LinkListener>;
  /** Called once by each plane. */
  raftOptions(): Omit<
    RaftHostOptions,
    'disk' | 'directory' | 'ids' | 'transport' | 'onFatal' | 'fsync' | 'acceptLoss'
  >;
}

export const realMachine: PlaneMachine = {
  disk: realDisk,
  dial: dialLink,
  listen: async (context, { host, port }, report) => {
    const listener = new ClusterListener(context, report);
    await listener.listen(host, port);
    return listener;
  },
  raftOptions: () => ({ boot: bootId() }),
};

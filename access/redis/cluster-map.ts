// The nodes of a cluster as reported to clients that address the leaders themselves (`redis.cluster-mode redirect`).

import { createHash } from 'node:crypto';
import { slotCount } from '../../universal-row/crc16.ts';
import { GroupExecutor } from '../gateway/pods/group-executor.ts';
import type { Router } from '../gateway/router.ts';
import { PartitionedTable } from './partitions/partitioned-table.ts';

export interface ClusterMember {
  readonly node: number;
  /** Forty hexadecimal digits. */
  readonly id: string;
  /** As clients reach it. */
  readonly host: string;
  readonly port: number;
}

/** Nodes that keep the keys of some slots. */
export interface SlotRange {
  readonly first: number;
  readonly last: number;
  /**
   * Clients are directed to this node first. Without a known leader it is a node that will learn
   * the leader.
   */
  readonly leader: ClusterMember;
  readonly replicas: readonly ClusterMember[];
}

interface ClusterMapOptions {
  /** Name of the cluster. */
  readonly name: string;
  /** This one. */
  readonly node: number;
  readonly router: Router;
}

const lastSlot = slotCount - 1;

export class ClusterMap {
  readonly #options: ClusterMapOptions;
  readonly #members = new Map<number, ClusterMember>();

  constructor(options: ClusterMapOptions) {
    this.#options = options;
  }

  /** `address` is `HOST:PORT` as clients reach the node. */
  setNodes(nodes: Iterable<{ node: number; address: string }>): void {
    this.#members.clear();
    for (const { node, address } of nodes) {
      const colon = address.lastIndexOf(':');
      const host = address.slice(0, colon).replace(/^\[|\]$/g, '');
      const port = Number(address.slice(colon + 1));
      if (host === '' || !(port > 0)) continue;
      const id = createHash('sha1').update(`${this.#options.name}/${node}`).digest('hex');
      this.#members.set(node, { node, id, host, port });
    }
  }

  get self(): ClusterMember | undefined {
    return this.#members.get(this.#options.node);
  }

  members(): ClusterMember[] {
    return [...this.#members.values()];
  }

  /** Slot ranges in ascending order, without ranges whose node is unknown. */
  ranges(table: number): SlotRange[] {
    const { group, executor } = this.#options.router.to(table);
    if (executor instanceof PartitionedTable) {
      return executor.lanes.flatMap(({ partition: { first, last, pod } }) =>
        pod instanceof GroupExecutor ? this.#rangeOf(pod, first, last) : [],
      );
    }
    return group === undefined ? [] : this.#rangeOf(group, 0, lastSlot);
  }

  #rangeOf(group: GroupExecutor, first: number, last: number): SlotRange[] {
    const members = group.replicas.flatMap((node) => this.#members.get(node) ?? []);
    // Where no node with a replica serves clients, this one forwards.
    const leader = this.#members.get(group.leader) ?? members[0] ?? this.self;
    if (leader === undefined) return [];
    return [{ first, last, leader, replicas: members.filter((one) => one !== leader) }];
  }

  /** The node to which a command on a slot of the table is redirected; undefined if the command may run here. */
  elsewhere(table: number, slot: number): ClusterMember | undefined {
    const { group, executor } = this.#options.router.to(table);
    const pod = executor instanceof PartitionedTable ? executor.laneOf(slot).partition.pod : group;
    if (!(pod instanceof GroupExecutor) || pod.leader === this.#options.node) return undefined;
    // Without a leader it waits here as well as anywhere.
    return this.#members.get(pod.leader);
  }
}

// The other nodes of a cluster, as seen by the clients of one node, apart from commands on rows.

import type { PartitionQuestion } from '../../contracts/partition-map.ts';
import type { PublishedMessage } from './fan-out.ts';
import type { WideQuestion } from './wide-questions.ts';

/**
 * Result of SCRIPT KILL or FUNCTION KILL on a node; `other`: only those of the other kind are
 * running.
 */
export type KillOutcome = 'none' | 'killed' | 'unkillable' | 'other';

export type NodeQuestion =
  | WideQuestion
  /** SCRIPT LOAD; without a source SCRIPT FLUSH. */
  | { readonly what: 'loadScript'; readonly tenant: number; readonly source: string }
  /** The rows of its function libraries are other ones. */
  | { readonly what: 'librariesChanged'; readonly tenant: number }
  | { readonly what: 'killScripts'; readonly tenant: number; readonly functions: boolean }
  /** The node subscribes to changes of rows, or unsubscribes. */
  | {
      readonly what: 'followChanges';
      readonly node: number;
      readonly isWanted: boolean;
      readonly wantsMisses: boolean;
    }
  /** The node wants to be shown the commands of these tenants' clients for some seconds; of none: no more. */
  | { readonly what: 'followCommands'; readonly node: number; readonly tenants: readonly number[] }
  /** Between leaders of groups. */
  | { readonly what: 'partition'; readonly question: PartitionQuestion }
  /** For a group: `GroupPosition`. */
  | {
      readonly what: 'position';
      readonly group: number;
      readonly copies: number;
      readonly ms: number;
      /** Also until the leader itself has it on disk: a majority may do without. */
      readonly local?: boolean;
    };

/** Position in a group's log that covers all replies so far. */
export interface GroupPosition {
  readonly index: number;
  /** Replicas beside the leader that have it on disk. */
  readonly copies: number;
  /** The leader has it on disk; absent where that was not asked. */
  readonly isLocal?: boolean;
  /** Nodes acknowledge before their disks do. */
  readonly isRelaxed?: boolean;
}

/** Questions about a tenant's clients. */
export type TenantQuestion = Extract<NodeQuestion, { readonly tenant: number }>;

/** Other gateways that clients of the same tenants are connected to. */
export interface Elsewhere {
  /** Number of this node. */
  readonly node: number;
  /** How many nodes there are, in reach or not. */
  readonly nodes: number;
  /** The bytes of the message need not stay. */
  publish(tenant: number, message: PublishedMessage): void;
  /**
   * Asks all other nodes; resolves to the answers of those that are reachable and answer in time.
   */
  ask(question: NodeQuestion): Promise<unknown[]>;
  /** As `ask`, with the node of each answer. `silent` are reachable nodes that did not answer in time, or could not. */
  askNodes(question: NodeQuestion): Promise<{
    readonly answers: readonly { readonly node: number; readonly answer: unknown }[];
    readonly silent: readonly number[];
  }>;
  /**
   * Position of a group's log, once `copies` replicas beside its leader (with `local` also the leader) have all entries up
   * to it, or after `ms` milliseconds. Rejects while there is no leader.
   */
  position(group: number, copies: number, ms: number, local?: boolean): Promise<GroupPosition>;
}

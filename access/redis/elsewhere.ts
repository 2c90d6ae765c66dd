// The other nodes of a cluster, as the clients of one meet them beside commands on rows.

import type { PublishedMessage } from './fan-out.ts';

/** What became of SCRIPT KILL, or FUNCTION KILL, on a node: `other`, there are those of the other kind only. */
export type KillOutcome = 'none' | 'killed' | 'unkillable' | 'other';

export type NodeQuestion =
  /** SCRIPT LOAD; without a source SCRIPT FLUSH. */
  | { readonly what: 'loadScript'; readonly tenant: number; readonly source: string }
  /** The rows of its function libraries are other ones. */
  | { readonly what: 'librariesChanged'; readonly tenant: number }
  | { readonly what: 'killScripts'; readonly tenant: number; readonly functions: boolean }
  /** The node wants to be told of changes of rows, or no more. */
  | {
      readonly what: 'followChanges';
      readonly node: number;
      readonly isWanted: boolean;
      readonly wantsMisses: boolean;
    };

/** Of a tenant's clients. */
export type TenantQuestion = Extract<NodeQuestion, { readonly tenant: number }>;

/** Other gateways that clients of the same tenants are connected to. */
export interface Elsewhere {
  /** The bytes of the message need not stay. */
  publish(tenant: number, message: PublishedMessage): void;
  /** Asks all others; resolves to what those answer that can be reached. */
  ask(question: NodeQuestion): Promise<unknown[]>;
}

// The audit trails of all nodes of a cluster, readable through any node.

import type { AuditFilter, AuditLog, AuditRecord } from './audit-log.ts';

export interface AuditQuery extends AuditFilter {
  /** Returns only records after this number; if absent, the latest records. */
  readonly after?: number | undefined;
  readonly limit: number;
}

/** Each node numbers its own records. */
export interface NodeAuditRecord extends AuditRecord {
  readonly node: number;
}

export interface WideAudit {
  /** Number of this node. */
  readonly node: number;
  /** Records of one node. Rejects if the node does not answer. */
  of(node: number, query: AuditQuery): Promise<AuditRecord[]>;
  /** Records of all nodes that answer, and the numbers of the nodes that do not. */
  all(query: AuditQuery): Promise<{
    readonly answers: readonly { readonly node: number; readonly records: AuditRecord[] }[];
    readonly silent: readonly number[];
  }>;
}

interface AuditAnswer {
  audit: AuditRecord[];
  /** Nodes whose records are missing. */
  silentNodes?: readonly number[];
}

export function readAudit(log: AuditLog, { after, limit, ...wanted }: AuditQuery): AuditRecord[] {
  return after === undefined ? log.last(limit, wanted) : log.read(after, limit, wanted);
}

/**
 * Without `after`, the latest records of all nodes by time. With `after`, the records of one node, because each node has
 * a numbering of its own.
 */
export async function readWideAudit(
  wide: WideAudit,
  query: AuditQuery,
  node?: number,
): Promise<AuditAnswer> {
  if (node !== undefined || query.after !== undefined) {
    const one = node ?? wide.node;
    return { audit: marked(one, await wide.of(one, query)) };
  }
  const { answers, silent } = await wide.all(query);
  const all = answers.flatMap(({ node: one, records }) => marked(one, records));
  const audit = all.sort((a, b) => a.at - b.at).slice(-query.limit);
  return silent.length === 0 ? { audit } : { audit, silentNodes: silent };
}

function marked(node: number, records: readonly AuditRecord[]): NodeAuditRecord[] {
  return records.map((record) => ({ ...record, node }));
}

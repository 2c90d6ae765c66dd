// The audit trails of all nodes of a cluster, as one through any of them.

import type { AuditFilter, AuditLog, AuditRecord } from './audit-log.ts';

export interface AuditQuery extends AuditFilter {
  /** Only records after this number; the last ones where it is absent. */
  readonly after?: number | undefined;
  readonly limit: number;
}

/** Each node numbers its own records. */
export interface NodeAuditRecord extends AuditRecord {
  readonly node: number;
}

export interface WideAudit {
  /** The node at hand. */
  readonly node: number;
  /** Of one node. Rejects where that does not answer. */
  of(node: number, query: AuditQuery): Promise<AuditRecord[]>;
  /** Of all nodes that answer, and those that do not. */
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

/** Of all nodes the last records by time; those after a number are of one node, which numbers them. */
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

// Workflows and locks as documents: how they are written, and what is read from them.

import type { DocumentMirror, MirrorWrite } from '../metadata/document-mirror.ts';
import type { Json } from '../metadata/document-store.ts';
import { hasEnded, lockCollection, workflowCollection, type WorkflowDocument } from './workflow.ts';

export interface WorkflowEntry {
  id: string;
  document: WorkflowDocument;
}

export function write(id: string, document: WorkflowDocument): MirrorWrite {
  return { collection: workflowCollection, id, body: document as unknown as Json };
}

export function removal(id: string): MirrorWrite {
  return { collection: workflowCollection, id, body: undefined };
}

/** Resources that a workflow locks or gives back. */
export interface LockChange {
  take?: readonly string[];
  release?: readonly string[];
}

export function lockWrites(
  workflow: string,
  { take = [], release = [] }: LockChange,
): MirrorWrite[] {
  const lock = (id: string, body: Json | undefined): MirrorWrite => {
    return { collection: lockCollection, id, body };
  };
  return [
    ...take.map((resource) => lock(resource, { workflow })),
    ...release.map((resource) => lock(resource, undefined)),
  ];
}

/** Other workflows that have locked some of these. */
export function holdersOf(
  mirror: DocumentMirror,
  id: string,
  resources: readonly string[],
): string[] {
  return resources.flatMap((resource) => {
    const lock = mirror.get(lockCollection, resource) as { workflow: string } | undefined;
    return lock === undefined || lock.workflow === id ? [] : [lock.workflow];
  });
}

/** For sorting: oldest first. */
export function byAge(a: WorkflowEntry, b: WorkflowEntry): number {
  return a.document.createdAt - b.document.createdAt || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}

/** Those that ended first, of the workflows that have ended beyond `kept`. */
export function oldestEnded(entries: readonly WorkflowEntry[], kept: number): WorkflowEntry[] {
  const ended = entries
    .filter(({ document }) => hasEnded(document))
    .sort((a, b) => a.document.endedAt! - b.document.endedAt!);
  return ended.slice(0, Math.max(0, ended.length - kept));
}

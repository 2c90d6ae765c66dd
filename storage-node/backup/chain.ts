// From which parts of a chain of backups a pod's data comes together.

import type { BackupManifest, PodPart, ShardRef } from './manifest-content.ts';

/** A part, and the directory that its files are in. */
export interface PlacedPart extends PodPart {
  readonly directory: string;
}

/** A chain that lacks something. */
class BrokenChainError extends Error {
  override readonly name = 'BrokenChainError';
}

/** The backups up to `id`, beginning with the full backup. `read` throws for a missing or damaged backup. */
export function chainOf(id: string, read: (id: string) => BackupManifest): BackupManifest[] {
  const chain = [read(id)];
  for (;;) {
    const first = chain[0]!;
    if (first.parent === undefined) break;
    if (chain.some((one) => one.id === first.parent)) {
      throw new BrokenChainError(`backup ${first.id} is its own forerunner`);
    }
    const parent = read(first.parent);
    if (
      parent.chain !== first.chain ||
      parent.scope.tenant?.number !== first.scope.tenant?.number
    ) {
      throw new BrokenChainError(`backup ${first.id} does not go on from ${parent.id}`);
    }
    chain.unshift(parent);
  }
  for (const pod of podsOf(chain)) partsOf(chain, pod, '');
  return chain;
}

export interface PodName {
  readonly model: string;
  readonly group?: number | undefined;
}

/** Tells a pod of a server, or a group of a cluster, from all others in a backup. */
export function podOf({ model, group }: PodName): string {
  return group === undefined ? model : `${model} ${group}`;
}

/** Pods that the newest backup has a part of. */
export function podsOf(chain: readonly BackupManifest[]): string[] {
  return chain.at(-1)!.parts.map(podOf);
}

/** The parts of a pod that a restore needs, oldest first: the last full part and all parts after it. */
export function partsOf(chain: readonly BackupManifest[], pod: string, set: string): PlacedPart[] {
  const parts: PlacedPart[] = [];
  for (const { id, parts: all } of chain.toReversed()) {
    const part = all.find((one) => podOf(one) === pod);
    if (part === undefined) throw new BrokenChainError(`backup ${id} has no part of ${pod}`);
    const next = parts[0];
    if (
      next !== undefined &&
      (next.after !== part.point.index || next.point.volume !== part.point.volume)
    ) {
      throw new BrokenChainError(
        `the ${pod} part of a backup begins after entry ${next.after}, and that of ${id} ends with ${part.point.index}`,
      );
    }
    parts.unshift({ ...part, directory: `${set}/${id}` });
    if (part.kind === 'all') return parts;
  }
  throw new BrokenChainError(`no backup of the chain has all of ${pod}`);
}

/** Which part each shard of the newest one comes from. */
export function shardSources(parts: readonly PlacedPart[]): Map<number, PlacedPart> {
  const sources = new Map<number, PlacedPart>();
  for (const { shard } of parts.at(-1)!.shards ?? []) {
    const has = ({ shards }: PlacedPart): boolean =>
      shards?.some((one: ShardRef) => one.shard === shard && one.included) === true;
    const source = parts.findLast(has);
    if (source === undefined) throw new BrokenChainError(`no backup has shard ${shard}`);
    sources.set(shard, source);
  }
  return sources;
}

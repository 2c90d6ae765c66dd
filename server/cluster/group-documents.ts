// The documents of groups, as the controller changes them: each change is conditional on the state
// that the plan was based on.
//
//   groups/<number>      a GroupDefinition
//   groupMoves/<number>  a ReplicaMove: an operator wants a replica elsewhere
//   counters/groups      the next number of a group, which also prevents two controllers from creating groups at once

import { firstGroup, type GroupDefinition } from '../../contracts/cluster.ts';
import type { GroupChange, ReplicaMove } from '../../control/cluster/cluster-state.ts';
import type {
  DocumentStore,
  DocumentWrite,
  Json,
  StoredDocument,
} from '../../control/metadata/document-store.ts';
import type { ClusterMetadata } from './cluster-metadata.ts';
import { replicaId } from '../../storage-node/replicator/raft/replica-id.ts';

export const groupsCollection = 'groups';
export const movesCollection = 'groupMoves';
const counter = { collection: 'counters', id: 'groups' };
/** Groups created in one write. */
const createdAtOnce = 50;

type Create = GroupChange & { kind: 'create' };

/** Definitions and moves with the revisions they were read at. */
export class GroupDocuments {
  readonly #store: DocumentStore;
  readonly #counter: StoredDocument | undefined;
  readonly #groups: ReadonlyMap<number, StoredDocument>;
  readonly #moves: readonly StoredDocument[];

  private constructor(
    store: DocumentStore,
    counterDocument: StoredDocument | undefined,
    groups: readonly StoredDocument[],
    moves: readonly StoredDocument[],
  ) {
    this.#store = store;
    this.#counter = counterDocument;
    this.#groups = new Map(groups.map((document) => [Number(document.id), document]));
    this.#moves = moves;
  }

  /** Reads this node's copy, which may not be the latest. A change based on an older revision of a document is a conflict. */
  static copied(metadata: Pick<ClusterMetadata, 'store' | 'copyOf'>): GroupDocuments {
    const counted = metadata.copyOf(counter.collection).find(({ id }) => id === counter.id);
    const groups = metadata.copyOf(groupsCollection);
    return new GroupDocuments(metadata.store, counted, groups, metadata.copyOf(movesCollection));
  }

  get groups(): GroupDefinition[] {
    return [...this.#groups.values()].map(definitionOf).sort((a, b) => a.group - b.group);
  }

  get moves(): ReplicaMove[] {
    return this.#moves.map(({ body }) => body as unknown as ReplicaMove);
  }

  /** Throws `RevisionConflict` when another controller has created some. */
  async create(changes: readonly Create[]): Promise<void> {
    let next = (this.#counter?.body as { next: number } | undefined)?.next ?? firstGroup;
    let expected = this.#counter?.revision ?? 0;
    for (let i = 0; i < changes.length; i += createdAtOnce) {
      const some = changes.slice(i, i + createdAtOnce);
      const writes = some.map(({ purpose, nodes }, at) => {
        const replicas = nodes.map((node) => {
          return { replica: replicaId(node, 1), node, state: 'voter' as const };
        });
        const initial = replicas.map(({ replica }) => replica);
        return put({ ...purpose, group: next + at, epoch: 1, replicas, initial }, 0);
      });
      next += some.length;
      const revisions = await this.#store.write([
        { ...counter, body: { next }, expected },
        ...writes,
      ]);
      expected = revisions[0]!;
    }
  }

  /** Throws `RevisionConflict` when the document has changed since it was read. */
  async change(change: Exclude<GroupChange, { kind: 'create' | 'transfer' }>): Promise<void> {
    if (change.kind === 'endMove') {
      const move = this.#moves.find(({ id }) => Number(id) === change.group);
      if (move !== undefined) await this.#store.write([removal(move)]);
      return;
    }
    const document = this.#groups.get(change.group);
    if (document === undefined) return;
    if (change.kind === 'delete') {
      await this.#store.write([removal(document)]);
      return;
    }
    await this.#store.write([put(changed(definitionOf(document), change), document.revision)]);
  }
}

export function definitionOf({ body }: { body: Json }): GroupDefinition {
  return body as unknown as GroupDefinition;
}

function changed(
  definition: GroupDefinition,
  change: GroupChange & { kind: 'add' | 'leave' | 'forget' },
): GroupDefinition {
  const { replicas } = definition;
  const epoch = definition.epoch + 1;
  switch (change.kind) {
    case 'add': {
      // The epoch counts, so that no replica of the group ever had the id.
      const added = {
        replica: replicaId(change.node, epoch),
        node: change.node,
        state: 'voter' as const,
      };
      return { ...definition, epoch, replicas: [...replicas, added] };
    }
    case 'leave': {
      const left = replicas.map((one) =>
        one.node === change.node ? { ...one, state: 'leaving' as const } : one,
      );
      return { ...definition, epoch, replicas: left };
    }
    case 'forget':
      return {
        ...definition,
        epoch,
        replicas: replicas.filter(({ replica }) => replica !== change.replica),
      };
  }
}

function put(definition: GroupDefinition, expected: number): DocumentWrite {
  const id = String(definition.group);
  return { collection: groupsCollection, id, body: definition as unknown as Json, expected };
}

function removal({ collection, id, revision }: StoredDocument): DocumentWrite {
  return { collection, id, body: undefined, expected: revision };
}

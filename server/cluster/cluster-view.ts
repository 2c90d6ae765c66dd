// Nodes and groups in this node's copy of the metadata, reported to subscribers: first the current
// state, then the whole state after each change; simultaneous changes are combined.

import type { ClusterView, GroupDefinition } from '../../contracts/cluster.ts';
import type { ClusterMetadata } from './cluster-metadata.ts';
import { definitionOf, groupsCollection } from './group-documents.ts';

type Source = Pick<ClusterMetadata, 'store' | 'nodes' | 'onNodes'>;

/** Milliseconds within which changes are combined into one report. */
const gatherMs = 20;

export class ClusterViewFeed {
  readonly #source: Source;
  readonly #groups = new Map<number, GroupDefinition>();
  readonly #listeners = new Set<(view: ClusterView) => void>();
  readonly #stops: (() => void)[] = [];
  readonly #report: (message: string) => void;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  private constructor(source: Source, report: (message: string) => void) {
    this.#source = source;
    this.#report = report;
  }

  static async open(source: Source, report: (message: string) => void): Promise<ClusterViewFeed> {
    const feed = new ClusterViewFeed(source, report);
    const early: (() => void)[] = [];
    let isLoaded = false;
    const apply = (id: string, group: GroupDefinition | undefined): void => {
      if (group === undefined) feed.#groups.delete(Number(id));
      else feed.#groups.set(group.group, group);
      feed.#changed();
    };
    feed.#stops.push(
      source.store.watch(
        ({ collection, id, body }) => {
          if (collection !== groupsCollection) return;
          const group = body === undefined ? undefined : definitionOf({ body });
          if (isLoaded) apply(id, group);
          else early.push(() => apply(id, group));
        },
        () =>
          void feed
            .#load()
            .catch((error: Error) => report(`the groups are not known: ${error.message}`)),
      ),
      source.onNodes(() => feed.#changed()),
    );
    await feed.#load();
    isLoaded = true;
    // These changes may be older than the list; later ones follow.
    for (const change of early) change();
    return feed;
  }

  get view(): ClusterView {
    const groups = [...this.#groups.values()].sort((a, b) => a.group - b.group);
    return { nodes: this.#source.nodes(), groups };
  }

  /** Returns how to stop. */
  onChange(listener: (view: ClusterView) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    for (const stop of this.#stops.splice(0)) stop();
  }

  async #load(): Promise<void> {
    const documents = await this.#source.store.list(groupsCollection);
    this.#groups.clear();
    for (const document of documents) {
      const group = definitionOf(document);
      this.#groups.set(group.group, group);
    }
    this.#changed();
  }

  #changed(): void {
    if (this.#closed || this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      const { view } = this;
      for (const listener of this.#listeners) {
        try {
          listener(view);
        } catch (error) {
          this.#report(`a change of the cluster was not taken: ${(error as Error).message}`);
        }
      }
    }, gatherMs).unref();
  }
}

// How a change of tenants, users or tokens is made: one at a time, written as a whole, then in force.

import type { UserDefinition } from '../../contracts/tenancy/definitions.ts';
import { type DocumentStore, type Json, RevisionConflict } from '../metadata/document-store.ts';
import { DocumentMirror, type MirrorWrite } from '../metadata/document-mirror.ts';
import { TenancyPublisher } from './tenancy-publisher.ts';
import { tenancyCollections, type TenancyDocuments, type TenancyState } from './tenancy-state.ts';

// Another writer may change the same documents, but not again and again.
const mostAttempts = 5;

/** A write and the answer after it. */
export interface Planned<T> {
  writes: MirrorWrite[];
  result: T;
}

export class TenancyChanges {
  readonly mirror: DocumentMirror;
  readonly publisher: TenancyPublisher;
  #last: Promise<unknown> = Promise.resolve();

  private constructor(mirror: DocumentMirror, publisher: TenancyPublisher) {
    this.mirror = mirror;
    this.publisher = publisher;
  }

  static async open(
    store: DocumentStore,
    state: TenancyState,
    report: (message: string) => void,
  ): Promise<TenancyChanges> {
    const publisher = new TenancyPublisher(state, () => mirror.revision, report);
    let isPublishing = false;
    const mirror: DocumentMirror = await DocumentMirror.open(
      store,
      tenancyCollections,
      (change) => {
        state.apply(change);
        if (isPublishing) return;
        isPublishing = true;
        // For changes of other writers; an own change waits for its update itself.
        queueMicrotask(() => {
          isPublishing = false;
          publisher.publish().catch(() => {});
        });
      },
    );
    return new TenancyChanges(mirror, publisher);
  }

  /** `plan` reads the state just before it is written; it runs again after a conflict. */
  make<T>(plan: () => Planned<T>): Promise<T> {
    const made = this.#last.then(() => this.#make(plan));
    this.#last = made.catch(() => {});
    return made;
  }

  async #make<T>(plan: () => Planned<T>): Promise<T> {
    const result = await this.#write(plan);
    await this.publisher.publish();
    return result;
  }

  async #write<T>(plan: () => Planned<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      const { writes, result } = plan();
      if (writes.some(makesCredential) && !this.mirror.has('authentication', 'tenancy')) {
        writes.push(put('authentication', 'tenancy', { checksCredentials: true }));
      }
      try {
        if (writes.length > 0) await this.mirror.write(writes);
        return result;
      } catch (error) {
        if (!(error instanceof RevisionConflict) || attempt === mostAttempts) throw error;
      }
    }
  }

  async close(): Promise<void> {
    await this.publisher.close();
    await this.#last;
    this.mirror.close();
  }
}

/** A password or a token: from the first one on, wrong credentials are refused. */
function makesCredential({ collection, body }: MirrorWrite): boolean {
  if (body === undefined) return false;
  if (collection === 'tokens') return true;
  return collection === 'users' && (body as unknown as UserDefinition).secrets.length > 0;
}

export function put<C extends keyof TenancyDocuments>(
  collection: C,
  id: string,
  document: TenancyDocuments[C],
): MirrorWrite {
  return { collection, id, body: document as unknown as Json };
}

export function remove(collection: keyof TenancyDocuments, id: string): MirrorWrite {
  return { collection, id, body: undefined };
}

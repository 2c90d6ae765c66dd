// Links of a node to the pods of time series at the other nodes. They are made once a tenant's series are divided.

import { SeriesLink } from '../../access/influx/pods/series-link.ts';
import type { LinkContext } from '../../cluster-links/cluster-link.ts';
import type { dialLink } from '../../cluster-links/dial.ts';
import type { NodePlace } from './plane-machine.ts';

type Report = (level: 'info' | 'warn' | 'error', message: string, fields?: object) => void;

export class SeriesLinks {
  readonly #context: LinkContext;
  readonly #report: Report;
  readonly #dial: typeof dialLink;
  readonly #links = new Map<number, SeriesLink>();

  constructor(context: LinkContext, report: Report, dial: typeof dialLink) {
    this.#context = context;
    this.#report = report;
    this.#dial = dial;
  }

  /** Undefined for a node that is gone. */
  of(node: number): SeriesLink | undefined {
    return this.#links.get(node);
  }

  /** The other nodes from now on. */
  setPlaces(places: ReadonlyMap<number, NodePlace>): void {
    for (const [node, link] of [...this.#links]) {
      if (places.has(node)) continue;
      this.#links.delete(node);
      link.close();
    }
    for (const [node, place] of places) {
      const known = this.#links.get(node);
      if (known !== undefined) known.setPlace(place);
      else this.#links.set(node, this.#open(node, place));
    }
  }

  #open(node: number, place: NodePlace): SeriesLink {
    const link = new SeriesLink({
      ...place,
      node: String(node),
      context: this.#context,
      report: this.#report,
      dial: this.#dial,
    });
    // It is up when it can be; requests until then fail, and are made again.
    void link.start();
    return link;
  }

  close(): void {
    for (const link of this.#links.values()) link.close();
  }
}

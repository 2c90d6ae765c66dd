// Pods of time series for gateways in other processes: serves links of the purpose `series`.

import type { ClusterLink, LinkHandler, LinkService } from '../../cluster-links/cluster-link.ts';
import type { SeriesServerOptions, SeriesHost } from './served-series.ts';
import { SeriesGatewayLink } from './series-gateway-link.ts';
import { GroupSeriesKeys } from './series-keys.ts';

/** Between two looks whether catalogs have changed. */
const lookMs = 100;

export class SeriesServer implements LinkService, SeriesHost {
  readonly options: SeriesServerOptions;
  readonly keys = new GroupSeriesKeys();
  readonly #links = new Set<SeriesGatewayLink>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: SeriesServerOptions) {
    this.options = options;
  }

  /** Serves a link of a gateway (`ClusterListener.serve`). */
  open(link: ClusterLink): LinkHandler {
    // Requests on an earlier link of the same gateway precede all requests on this one, and the gateway has given up
    // on them. It may have sent their points again, and overwritten them since. The old requests must not be executed
    // now.
    for (const other of this.#links) if (other.isOf(link.peer)) other.close();
    const gateway = new SeriesGatewayLink(this, link, () => {
      this.#links.delete(gateway);
      if (this.#links.size === 0) this.#stop();
    });
    this.#links.add(gateway);
    this.#timer ??= setInterval(() => this.#look(), lookMs).unref();
    return gateway;
  }

  #stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #look(): void {
    for (const link of this.#links) link.tellCatalogs(false);
  }

  /** Properties of databases have changed, which does not change the version of a catalog. */
  changed(): void {
    for (const link of this.#links) link.tellCatalogs(true);
  }

  close(): void {
    this.#stop();
    for (const link of this.#links) link.close();
  }
}

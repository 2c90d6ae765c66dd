// Pods of this process behind the TCP carrier: tests run the protocols' own tests through it, with the environment variable
// TEST_POD_CARRIER=tcp.

import { randomBytes } from 'node:crypto';
import { PodLink } from '../../access/gateway/pods/pod-link.ts';
import { RemoteExecutor } from '../../access/gateway/pods/remote-executor.ts';
import type { LinkContext } from '../../cluster-links/cluster-link.ts';
import { ClusterListener } from '../../cluster-links/cluster-listener.ts';
import type { ScriptMessage } from '../../storage-node/pod-server/node-scripts.ts';
import { PodServer } from '../../storage-node/pod-server/pod-server.ts';
import type { PodServerOptions, ServedPod } from '../../storage-node/pod-server/served-pods.ts';
import type { Refusable } from '../../universal-row/executor.ts';

export const podsBehindTcp = process.env['TEST_POD_CARRIER'] === 'tcp';

interface LoopbackOptions {
  podOf: (table: number) => ServedPod;
  refusalOf: (command: Refusable) => string | undefined;
  scriptsOf: PodServerOptions['scriptsOf'];
  /** Sends a script's message to its subscribers. */
  publish: (tenant: number, message: ScriptMessage) => void;
  report: (level: 'info' | 'warn' | 'error', message: string, fields?: object) => void;
  failed: (error: unknown) => void;
}

export class LoopbackPods {
  readonly #options: LoopbackOptions;
  readonly #listener: ClusterListener;
  #link: PodLink | undefined;
  readonly #context: LinkContext = {
    identity: { cluster: 'loopback', node: 'self', incarnation: Date.now(), level: 1 },
    secret: randomBytes(32),
  };

  constructor(options: LoopbackOptions) {
    this.#options = options;
    const { podOf, scriptsOf, publish, report, failed } = options;
    const pods = new PodServer({
      podOf,
      scriptsOf,
      publish,
      report,
      failed,
      answer: () => {
        throw new Error('nothing is asked here');
      },
    });
    this.#listener = new ClusterListener(this.#context, report);
    this.#listener.serve('pods', pods);
  }

  async start(): Promise<void> {
    await this.#listener.listen('127.0.0.1', 0);
    this.#link = new PodLink({
      host: '127.0.0.1',
      port: this.#listener.port,
      context: this.#context,
      report: this.#options.report,
    });
    await this.#link.start();
  }

  /** Another one for each pod, so that they are distinguished. */
  newExecutor(): RemoteExecutor {
    return new RemoteExecutor(this.#link!, this.#options.refusalOf);
  }

  async close(): Promise<void> {
    this.#link?.close();
    await this.#listener.close();
  }
}

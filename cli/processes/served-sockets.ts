// The sockets of a server of several processes, bound by the first one and inherited by the others.

import { listenError } from '../../server/lifecycle/exit-error.ts';
import {
  bindSocket,
  type BoundSocket,
  type SharedSockets,
} from '../../server/lifecycle/process-set.ts';
import type { Config } from '../../server/settings/schema.ts';

interface NamedSocket {
  readonly name: keyof SharedSockets;
  /** Setting of its port. */
  readonly key: string;
  readonly socket: BoundSocket;
}

/** The ports as flags, and the sockets in the order in which a process inherits them. */
export class ServedSockets {
  readonly #bound: readonly NamedSocket[];

  private constructor(bound: readonly NamedSocket[]) {
    this.#bound = bound;
  }

  /** Throws `ExitError` when one of them cannot be had. */
  static async bind(config: Config): Promise<ServedSockets> {
    const wanted = [
      { name: 'redis', host: config['redis.host'], key: 'redis.port' },
      { name: 'influx', host: config['influx.host'], key: 'influx.port' },
      { name: 'admin', host: config['admin.host'], key: 'admin.port' },
      ...(config['redis.tls-port'] === 0
        ? []
        : [{ name: 'redisTls', host: config['redis.host'], key: 'redis.tls-port' } as const]),
    ] as const;
    const bound: NamedSocket[] = [];
    for (const { name, host, key } of wanted) {
      const port = config[key];
      try {
        bound.push({ name, key, socket: await bindSocket(host, port) });
      } catch (error) {
        for (const { socket } of bound) socket.close();
        throw listenError(error, host, port, key);
      }
    }
    return new ServedSockets(bound);
  }

  get descriptors(): number[] {
    return this.#bound.map(({ socket }) => socket.fd);
  }

  /** Their descriptors in a process that inherits them from `first` on. */
  inherited(first: number): SharedSockets {
    const entries = this.#bound.map(({ name }, i) => [name, first + i]);
    return Object.fromEntries(entries) as unknown as SharedSockets;
  }

  /** As flags for the processes, without the admin API's port, as each has one of its own. */
  get ports(): string[] {
    return this.#bound
      .filter(({ name }) => name !== 'admin')
      .flatMap(({ key, socket }) => [`--${key}`, String(socket.port)]);
  }

  close(): void {
    for (const { socket } of this.#bound) socket.close();
  }
}

// Tenants of the open connections: a connection belongs to the tenant of its last request, and a
// tenant's number of connections is limited.

import type { Socket } from 'node:net';
import { limitText } from '../tenants/limits.ts';
import type { TenantSpace } from '../tenants/tenant-space.ts';
import { HttpError } from './http-error.ts';

export class TenantConnections {
  readonly #spaces = new Map<Socket, TenantSpace>();

  /** A request of the tenant came on it. Throws `HttpError` when the tenant has too many already. */
  use(socket: Socket, space: TenantSpace, isV2: boolean): void {
    const before = this.#spaces.get(socket);
    if (before === space || socket.destroyed) return;
    const { connections: limit } = space.limits;
    if (limit > 0 && space.connections >= limit) {
      // 5xx, as clients of 1.x drop the points after any 4xx.
      throw new HttpError(isV2 ? 429 : 503, limitText(space.name, 'connections', limit), {
        headers: { 'Retry-After': '1', Connection: 'close' },
      });
    }
    if (before === undefined) socket.once('close', () => this.#leave(socket));
    else before.connections--;
    this.#spaces.set(socket, space);
    space.connections++;
  }

  #leave(socket: Socket): void {
    const space = this.#spaces.get(socket);
    if (space !== undefined) space.connections--;
    this.#spaces.delete(socket);
  }
}

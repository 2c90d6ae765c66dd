// Clients that are not authenticated yet: connections before their login, and handshakes in progress. When there are too
// many, the next one replaces the oldest client of the address with the most clients.

/**
 * Group a client is counted in: an IPv4 address, or the /64 network of an IPv6 address, as one host
 * has all of it.
 */
export function addressGroup(address: string): string {
  if (!address.includes(':')) return address;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address);
  if (mapped !== null) return mapped[1]!;
  const [head = '', tail = ''] = address.split('::');
  const first = head === '' ? [] : head.split(':');
  const last = tail === '' ? [] : tail.split(':');
  const zeros = address.includes('::') ? 8 - first.length - last.length : 0;
  return [...first, ...Array.from({ length: Math.max(0, zeros) }, () => '0'), ...last]
    .slice(0, 4)
    .join(':');
}

// A victim is looked for among so many of the oldest of an address: a search takes the same time however many there are.
const candidates = 16;

export class PendingClients<C> {
  readonly #groupOf = new Map<C, string>();
  /** Clients of each group, the oldest first. */
  readonly #groups = new Map<string, Set<C>>();
  /** Groups by how many clients they have; index 0 is not used. */
  readonly #bySize: Set<Set<C>>[] = [];
  #largest = 0;

  get size(): number {
    return this.#groupOf.size;
  }

  has(client: C): boolean {
    return this.#groupOf.has(client);
  }

  add(client: C, address: string): void {
    if (this.#groupOf.has(client)) return;
    const name = addressGroup(address);
    this.#groupOf.set(client, name);
    let group = this.#groups.get(name);
    if (group === undefined) this.#groups.set(name, (group = new Set()));
    this.#resize(group, () => group.add(client));
  }

  delete(client: C): void {
    const name = this.#groupOf.get(client);
    if (name === undefined) return;
    this.#groupOf.delete(client);
    const group = this.#groups.get(name)!;
    this.#resize(group, () => group.delete(client));
    if (group.size === 0) this.#groups.delete(name);
  }

  #resize(group: Set<C>, change: () => void): void {
    const before = group.size;
    if (before > 0) this.#bySize[before]!.delete(group);
    change();
    const { size } = group;
    if (size > 0) (this.#bySize[size] ??= new Set()).add(group);
    if (size > this.#largest) this.#largest = size;
    else if (before === this.#largest && this.#bySize[before]!.size === 0) this.#largest = size;
  }

  /** All clients, the oldest first. */
  oldest(): IterableIterator<C> {
    return this.#groupOf.keys();
  }

  /**
   * The client to give way: of the group with the most clients the oldest that is not busy; the oldest of all when none
   * of the first few is. Undefined when there are none.
   */
  victim(isBusy: (client: C) => boolean): C | undefined {
    const [group] = this.#bySize[this.#largest] ?? [];
    if (group === undefined) return undefined;
    let looked = 0;
    for (const client of group) {
      if (!isBusy(client)) return client;
      if (++looked === candidates) break;
    }
    const [first] = group;
    return first;
  }
}

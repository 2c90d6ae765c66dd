// Which keys or series the requests of a plane touch most, by units, by requests and by bytes.
//
// A sample is taken whenever so much has been spent since the last one: what costs twice as much is twice as
// likely to be the one on which it falls. How much is left to chance, as requests may come in a rhythm. So a
// request pays a few additions, and the few samples a second pay for the names.

import { type HeavyName, SpaceSaving } from '../../request-units/space-saving.ts';
import type { Clock, Rng } from '../../universal-row/environment.ts';

/** Names kept for each order. */
const capacity = 512;
const samplesPerSecond = 200;
/** What is older than this counts for little. */
const memorySeconds = 30;
const longestName = 256;

/** Which order a sample is for: bits of what `note` returns. */
export const Sample = { ru: 1, rate: 2, bytes: 4 } as const;

export interface HotName {
  tenant: number;
  database: number | string;
  name: string;
  /** What was spent on it, in the terms of `note`, and requests; a second, over the last half minute. */
  ru: number;
  rate: number;
  /** The most that one of the sampled requests moved. */
  bytes: number;
}

class Order {
  spent = 0;
  /** How much is spent from one sample to the next: on average, and this time. */
  step = 0;
  due = 0;
  total = 0;
  readonly sketch = new SpaceSaving(capacity);
  /** What is not worth being kept. */
  readonly least: number;

  constructor(least: number) {
    this.least = least;
  }
}

export class HotNames {
  private readonly ru = new Order(0.001);
  private readonly rate = new Order(0.01);
  private readonly bytes = new Order(1);
  /** By id: the largest request seen. Of names that an order has, and a second's others. */
  private readonly sizes = new Map<string, number>();
  private spentInAll = 0;
  private readonly clock: Clock;
  private readonly rng: Rng;
  private readonly startedAt: number;
  private fadedAt: number;

  constructor(clock: Clock, rng: Rng) {
    this.clock = clock;
    this.rng = rng;
    this.startedAt = clock.monotonic();
    this.fadedAt = this.startedAt;
  }

  /** All that was ever spent, in the terms of `note`. */
  get spent(): number {
    return this.spentInAll + this.ru.spent;
  }

  /** A request: 0, or which samples it is to give by `record`. */
  note(cost: number, bytes: number): number {
    let wanted = 0;
    if ((this.ru.spent += cost) >= this.ru.due) wanted |= Sample.ru;
    if ((this.rate.spent += 1) >= this.rate.due) wanted |= Sample.rate;
    if ((this.bytes.spent += bytes) >= this.bytes.due) wanted |= Sample.bytes;
    return wanted;
  }

  /** The request on which the samples fell, and the bytes it moved. The name is Latin-1: its bytes. */
  record(
    wanted: number,
    tenant: number,
    database: number | string,
    name: string,
    bytes: number,
  ): void {
    const id = idOf(tenant, database, name);
    if (wanted & Sample.ru) this.#take(this.ru, id);
    if (wanted & Sample.rate) this.#take(this.rate, id);
    if (wanted & Sample.bytes) this.#take(this.bytes, id);
    this.#seen(id, bytes);
  }

  /** As many `note`s and `record`s: requests of which this one stands for `requests` alike. */
  add(
    tenant: number,
    database: number | string,
    name: string,
    requests: number,
    cost: number,
    bytes: number,
  ): void {
    const id = idOf(tenant, database, name);
    this.spentInAll += cost;
    this.ru.sketch.add(id, cost);
    this.rate.sketch.add(id, requests);
    this.bytes.sketch.add(id, bytes);
    this.#seen(id, bytes / requests);
  }

  /** To be called about once a second. */
  tick(): void {
    const now = this.clock.monotonic();
    const seconds = (now - this.fadedAt) / 1000;
    if (seconds <= 0) return;
    this.fadedAt = now;
    const factor = Math.exp(-seconds / memorySeconds);
    for (const order of [this.ru, this.rate, this.bytes]) {
      // What was spent but not yet sampled belongs to this second as well.
      const perSecond = (order.total + order.spent) / seconds;
      order.total = -order.spent;
      // Slowly down, so that a burst after a lull does not sample every request.
      order.step = Math.max(perSecond / samplesPerSecond, order.step / 2);
      if (order.step < 1e-9) order.step = 0;
      order.sketch.fade(factor, order.least);
    }
    for (const id of this.sizes.keys()) {
      if (
        this.ru.sketch.count(id) + this.rate.sketch.count(id) + this.bytes.sketch.count(id) ===
        0
      ) {
        this.sizes.delete(id);
      }
    }
  }

  /** The hottest first; of one tenant, if its number is given. */
  top(by: keyof typeof Sample, limit: number, tenant?: number): HotName[] {
    const prefix = tenant === undefined ? '' : `${tenant}\0`;
    const wanted = (id: string): boolean => id.startsWith(prefix);
    return this[by].sketch.heaviest(limit, wanted).map((heavy) => this.#shown(heavy));
  }

  #take(order: Order, id: string): void {
    if (order.spent <= 0) return;
    order.sketch.add(id, order.spent);
    order.total += order.spent;
    if (order === this.ru) this.spentInAll += order.spent;
    order.spent = 0;
    order.due = order.step * 2 * this.rng.next();
  }

  #seen(id: string, bytes: number): void {
    if (bytes > (this.sizes.get(id) ?? 0)) this.sizes.set(id, bytes);
  }

  #shown({ name: id }: HeavyName): HotName {
    const [tenant, database, name] = id.split('\0', 2).concat(restOf(id)) as [
      string,
      string,
      string,
    ];
    const age = (this.clock.monotonic() - this.startedAt) / 1000;
    // A steady rate has come to this many seconds' worth, as what is old has faded.
    const seconds = Math.max(1, memorySeconds * (1 - Math.exp(-age / memorySeconds)));
    return {
      tenant: Number(tenant),
      database: database.startsWith('#') ? Number(database.slice(1)) : database.slice(1),
      name: readable(name),
      ru: this.ru.sketch.count(id) / seconds,
      rate: this.rate.sketch.count(id) / seconds,
      bytes: this.sizes.get(id) ?? 0,
    };
  }
}

function idOf(tenant: number, database: number | string, name: string): string {
  const short = name.length > longestName ? `${name.slice(0, longestName)}…` : name;
  return `${tenant}\0${typeof database === 'number' ? '#' : '$'}${database}\0${short}`;
}

/** The name itself may hold zero bytes. */
function restOf(id: string): string {
  const second = id.indexOf('\0', id.indexOf('\0') + 1);
  return id.slice(second + 1);
}

/** Text where the bytes are text, and `\xNN` where they are none. */
function readable(latin1: string): string {
  // The mark of a shortened name is the only character that is no byte.
  const short = latin1.endsWith('…');
  const bytes = Buffer.from(short ? latin1.slice(0, -1) : latin1, 'latin1');
  const text = bytes.toString('utf8');
  const isText = !text.includes('\ufffd') && !bytes.some((byte) => byte < 32 || byte === 127);
  const shown = isText ? text : [...bytes].map(byteText).join('');
  return short ? `${shown}…` : shown;
}

function byteText(byte: number): string {
  if (byte >= 32 && byte < 127) return String.fromCharCode(byte);
  return `\\x${byte.toString(16).padStart(2, '0')}`;
}

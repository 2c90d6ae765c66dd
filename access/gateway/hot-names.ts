// Hot keys and series of a plane, by units, by requests and by bytes.
//
// A sample is taken after a random amount of units: a request that costs twice as much is twice as
// likely to be sampled, and then stands for half as many requests. The amount is random because
// requests may be periodic. So a request costs one subtraction, and a few samples a second pay for
// the names. Each client has a sampler of its own, whose counter is a small integer.

import { type HeavyName, SpaceSaving } from '../../request-units/space-saving.ts';
import type { Clock, Rng } from '../../universal-row/environment.ts';

/** Names kept for each order. */
const capacity = 512;
const samplesPerSecond = 150;
/** Older requests carry little weight. */
const memorySeconds = 30;
const longestName = 256;
/** Keeps the sampler's counters small integers, which need no heap object. */
const longestWait = 2 ** 30 - 1;

type HotOrder = 'ru' | 'rate' | 'bytes';

interface HotName {
  tenant: number;
  database: number | string;
  name: string;
  /**
   * Units spent on the name, as the samplers count them, and requests; a second, over the last half
   * minute.
   */
  ru: number;
  rate: number;
  /** Bytes moved by the largest sampled request. */
  bytes: number;
}

/** Names below these rates are dropped. */
const least: Readonly<Record<HotOrder, number>> = { ru: 0.001, rate: 0.01, bytes: 1 };
const orders = ['ru', 'rate', 'bytes'] as const;

export class HotNames {
  /** Mean units from one sample to the next. */
  private step = 0;
  private spentInSecond = 0;
  private samplesInSecond = 0;
  private readonly sketches: Readonly<Record<HotOrder, SpaceSaving>> = {
    ru: new SpaceSaving(capacity),
    rate: new SpaceSaving(capacity),
    bytes: new SpaceSaving(capacity),
  };
  /** Largest sampled request by id, for names in any sketch. `tick` removes the others. */
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

  /** Total units spent, as estimated from the samples. */
  get spent(): number {
    return this.spentInAll;
  }

  /** Units until the next sample, random. A small integer. */
  next(): number {
    return Math.min(longestWait, Math.floor(this.step * 2 * this.rng.next()));
  }

  /** Current maximum of `next`. */
  get longest(): number {
    return Math.min(longestWait, Math.floor(this.step * 2));
  }

  /**
   * Records a sampled request of this cost, `spent` units after the previous sample. `name` has one Latin-1 character for
   * each byte.
   */
  sampled(
    tenant: number,
    database: number | string,
    name: string,
    cost: number,
    bytes: number,
    spent: number,
  ): void {
    this.spentInSecond += spent;
    if (++this.samplesInSecond >= samplesPerSecond) {
      // Load is far above that of the last second, or this is the first second: adapt before it ends.
      this.samplesInSecond = 0;
      this.step = Math.max(4 * this.step, cost);
    }
    const requests = spent / cost;
    this.add(tenant, database, name, requests, spent, requests * bytes);
  }

  /** Adds one sampled request, which represents `requests` similar ones. `cost` and `bytes` are the totals of all of them. */
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
    this.sketches.ru.add(id, cost);
    this.sketches.rate.add(id, requests);
    this.sketches.bytes.add(id, bytes);
    this.#seen(id, bytes / requests);
  }

  /** To be called about once a second. */
  tick(): void {
    const now = this.clock.monotonic();
    const seconds = (now - this.fadedAt) / 1000;
    if (seconds <= 0) return;
    this.fadedAt = now;
    const factor = Math.exp(-seconds / memorySeconds);
    const perSecond = this.spentInSecond / seconds;
    this.spentInSecond = 0;
    this.samplesInSecond = 0;
    // Slowly down, so that a burst after a lull does not sample every request.
    this.step = Math.max(perSecond / samplesPerSecond, this.step / 2);
    if (this.step < 1e-9) this.step = 0;
    for (const order of orders) this.sketches[order].fade(factor, least[order]);
    for (const id of this.sizes.keys()) {
      if (orders.every((order) => this.sketches[order].count(id) === 0)) this.sizes.delete(id);
    }
  }

  /** The hottest names first; only names of `tenant` if it is given. */
  top(by: HotOrder, limit: number, tenant?: number): HotName[] {
    const prefix = tenant === undefined ? '' : `${tenant}\0`;
    const wanted = (id: string): boolean => id.startsWith(prefix);
    return this.sketches[by].heaviest(limit, wanted).map((heavy) => this.#shown(heavy));
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
    // A steady rate counts for this many seconds, because old samples have decayed.
    const seconds = Math.max(1, memorySeconds * (1 - Math.exp(-age / memorySeconds)));
    return {
      tenant: Number(tenant),
      database: database.startsWith('#') ? Number(database.slice(1)) : database.slice(1),
      name: readable(name),
      ru: this.sketches.ru.count(id) / seconds,
      rate: this.sketches.rate.count(id) / seconds,
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

/** Samples the requests of one client. */
export class HotSampler {
  /**
   * Units until the next sample: the server of a request subtracts its cost in whole units, and
   * calls `record` when the result is negative.
   */
  left: number;
  /** Value of `left` after the last sample. */
  private due: number;
  private readonly hot: HotNames;

  constructor(hot: HotNames) {
    this.hot = hot;
    this.left = hot.next();
    this.due = this.left;
  }

  /** The request on which the sample fell, its cost, and the bytes it moved. */
  record(
    tenant: number,
    database: number | string,
    name: string,
    cost: number,
    bytes: number,
  ): void {
    const { hot } = this;
    hot.sampled(tenant, database, name, cost, bytes, this.due - this.left);
    this.due = this.left = hot.next();
  }

  /** Called periodically. Shortens a wait drawn under heavy load, so that the client is sampled again soon after. */
  catchUp(): void {
    const beyond = this.left - this.hot.longest;
    if (beyond <= 0) return;
    this.left -= beyond;
    this.due -= beyond;
  }
}

// Clients of a history of time series: each writes points, reads, deletes, and makes and drops databases, through one node after the other. Some
// read within a session, and some at any age.

import type { Random } from '../../storage-node/replicator/simulation/timeline.ts';
import type { OwnedTimeline } from '../histories/owned-timeline.ts';
import { type Answer, HttpClient } from './http-client.ts';
import type { SeriesNode } from './node.ts';
import { type Points, Session } from './points.ts';

/** Shared by the clients of a history. */
export interface ClientsWorld {
  readonly timeline: OwnedTimeline;
  readonly points: Points;
  /** Values and events take up to so many bytes more. */
  readonly payload: number;
  readonly isOver: () => boolean;
  /** Disks were full, or have failed. */
  readonly hasBadDisks: () => boolean;
  /** Numbers values and events. */
  made: number;
}

interface Result {
  readonly error?: string;
  readonly series?: readonly {
    readonly tags?: Readonly<Record<string, string>>;
    readonly values: readonly (readonly unknown[])[];
  }[];
}

/** Of points that are written again and again: series, and times of each. */
const registerSeries = 10;
const registerTimes = 3;
/** Of points that are written once. */
const eventSeries = 8;
/** Points until a measurement and a database of events give way to the next. */
const eventsAtATime = 80;
const made = '{"results":[{"statement_id":0}]}\n';

/** What clients may be told of a cluster under faults. All else is a failure of the history. */
const expected =
  /no leader|outcome unknown|timeout|cannot be reached|is the leader of this database|has moved|another deletion|later change of the databases|not found|already exists|conflicts with|must be greater|not all partitions|link to the node|replica of this group|is not served|is closed|is stopping|session|catching up|waits? for|try again/i;
/** And of disks. */
const expectedOfDisks = /write failed: .*(disk full|ENOSPC|EIO)/;

export class PointClient {
  readonly #world: ClientsWorld;
  readonly #nodes: readonly SeriesNode[];
  readonly #random: Random;
  #node: SeriesNode;
  #client: HttpClient | undefined;
  /** Reads are strong unless this or a session is set. */
  #isEventual = false;
  #session: Session | undefined;
  #token = 'AQ';

  /** The first of the nodes is asked first. */
  constructor(world: ClientsWorld, nodes: readonly SeriesNode[], random: Random) {
    this.#world = world;
    this.#nodes = nodes;
    this.#node = nodes[0]!;
    this.#random = random;
  }

  /** Resolves when the faults are over. Rejects when an answer cannot be. */
  async run(): Promise<void> {
    const random = this.#random;
    if (random.chance(0.3)) this.#session = new Session();
    else this.#isEventual = random.chance(0.15);
    while (!this.#world.isOver()) {
      await this.#world.timeline.sleep(random.next() * 60);
      if (random.chance(0.05)) this.#goElsewhere();
      if (!this.#connect()) continue;
      const draw = random.next();
      if (draw < 0.3) await this.#writeRegisters();
      else if (draw < 0.55) await this.#readRegisters();
      else if (draw < 0.75) await this.#writeEvents();
      else if (draw < 0.9) await this.#listEvents();
      else if (draw < 0.93) await this.#deleteEvents();
      else if (draw < 0.96) await this.#changeOthers();
      else await this.#changeDatabase();
    }
  }

  /** What there is at the end. Rejects when it cannot be read. */
  async readAll(): Promise<void> {
    const { timeline, made: count } = this.#world;
    while (!this.#connect()) await timeline.sleep(50);
    for (let s = 0; s < registerSeries; s++) {
      if (!(await this.#readRegister(s))) throw new Error('points cannot be read at the end');
    }
    for (let era = 0; era <= count / eventsAtATime; era++) {
      for (const [database, measurement] of [
        ['db', `e${era}`],
        [`db${era}`, 'e'],
      ] as const) {
        if (!(await this.#listIn(database, measurement))) {
          throw new Error(`the events of ${database} cannot be read at the end`);
        }
      }
    }
  }

  #goElsewhere(): void {
    this.#node = this.#random.pick(this.#nodes);
    this.#client?.close();
    this.#client = undefined;
  }

  #connect(): boolean {
    if (this.#client === undefined || this.#client.isGone) {
      const connection = this.#node.connect();
      this.#client = connection && new HttpClient(connection);
    }
    return this.#client !== undefined;
  }

  async #ask(method: 'GET' | 'POST', path: string, body = ''): Promise<Answer | undefined> {
    const answer = await this.#client!.ask(method, path, body, this.#headers());
    const token = answer?.headers['x-polyrow-session'];
    if (typeof token === 'string') this.#token = token;
    const isExpected = answer === undefined || answer.status < 300 || this.#isExpected(answer.text);
    if (!isExpected) throw new Error(`${path}: ${answer.status} ${answer.text}`);
    return answer;
  }

  #isExpected(text: string): boolean {
    return expected.test(text) || (this.#world.hasBadDisks() && expectedOfDisks.test(text));
  }

  #headers(): Record<string, string> {
    if (this.#session !== undefined) return { 'X-Polyrow-Session': this.#token };
    return this.#isEventual ? { 'X-Polyrow-Consistency': 'eventual' } : {};
  }

  /** Resolves to undefined where there is no result. */
  async #query(database: string, q: string, isChange = false): Promise<Result | undefined> {
    const path = `/query?db=${database}&epoch=ns&q=${encodeURIComponent(q)}`;
    const answer = await this.#ask(isChange ? 'POST' : 'GET', path);
    if (answer?.status !== 200) return undefined;
    const { results } = JSON.parse(answer.text) as { results: readonly Result[] };
    const [result] = results;
    if (result?.error !== undefined && !this.#isExpected(result.error)) {
      throw new Error(`${q}: ${result.error}`);
    }
    return result;
  }

  // ---- points that are written again and again

  /** Several at once, of series in several partitions. */
  async #writeRegisters(): Promise<void> {
    const { points } = this.#world;
    const random = this.#random;
    const written = new Map<string, string>();
    for (let count = 1 + random.below(6); count > 0; count--) {
      const point = `s=${random.below(registerSeries)} ${1 + random.below(registerTimes)}`;
      written.set(point, this.#newValue());
    }
    const lines = Array.from(written, ([point, value]) => {
      const [series, time] = point.split(' ');
      return `r,${series} v="${value}" ${time}`;
    });
    const call = points.tick();
    const isDone = await this.#write('db', lines);
    if (isDone === undefined) return;
    for (const [point, value] of written) {
      points.wrote(point, value, call, isDone, this.#session);
    }
  }

  /** Undefined where it was refused: the database is not there. */
  async #write(database: string, lines: readonly string[]): Promise<boolean | undefined> {
    const { points } = this.#world;
    const call = points.tick();
    const answer = await this.#ask('POST', `/write?db=${database}`, lines.join('\n'));
    if (answer?.status === 404) {
      points.missing(database, call);
      return undefined;
    }
    return answer?.status === 204;
  }

  #newValue(): string {
    const filling = 'x'.repeat(this.#random.below(1 + this.#world.payload));
    return `v${++this.#world.made}${filling}`;
  }

  get #isLate(): boolean {
    return this.#isEventual || this.#session !== undefined;
  }

  async #readRegisters(): Promise<void> {
    await this.#readRegister(this.#random.below(registerSeries));
  }

  async #readRegister(s: number): Promise<boolean> {
    const { points } = this.#world;
    const call = points.tick();
    const result = await this.#query('db', `SELECT v FROM r WHERE s = '${s}'`);
    if (result === undefined || result.error !== undefined) return false;
    const values = new Map(result.series?.[0]?.values as [number, string][] | undefined);
    for (let time = 1; time <= registerTimes; time++) {
      const [point, value] = [`s=${s} ${time}`, values.get(time)];
      if (this.#isLate) points.readLate(point, value, this.#session);
      else points.read(point, value, call);
    }
    return true;
  }

  // ---- points that are written once, in a measurement or in a database of their own

  get #era(): number {
    return Math.floor(this.#world.made / eventsAtATime);
  }

  #somePlace(): readonly [database: string, measurement: string] {
    const era = this.#era - (this.#random.chance(0.2) && this.#era > 0 ? 1 : 0);
    return this.#random.chance(0.5) ? ['db', `e${era}`] : [`db${era}`, 'e'];
  }

  async #writeEvents(): Promise<void> {
    const { points } = this.#world;
    const random = this.#random;
    const [database, measurement] = this.#somePlace();
    const scope = `${database} ${measurement}`;
    const events: { name: string; series: string }[] = [];
    const lines: string[] = [];
    for (let count = 1 + random.below(6); count > 0; count--) {
      const time = ++this.#world.made;
      const series = `${scope} s=${random.below(eventSeries)}`;
      events.push({ name: `${series} ${time}`, series });
      lines.push(`${measurement},${series.split(' ')[2]} v=1 ${time}`);
    }
    const call = points.tick();
    const isDone = await this.#write(database, lines);
    if (isDone === undefined) return;
    for (const { name, series } of events) {
      points.added(name, [scope, series], call, isDone, this.#session);
    }
  }

  async #listEvents(): Promise<void> {
    await this.#listIn(...this.#somePlace());
  }

  async #listIn(database: string, measurement: string): Promise<boolean> {
    const { points } = this.#world;
    const scope = `${database} ${measurement}`;
    const call = points.tick();
    const result = await this.#query(database, `SELECT v FROM ${measurement} GROUP BY s`);
    if (result === undefined) return false;
    const isGone = result.error?.includes('database not found') === true;
    if (result.error !== undefined && !isGone) return false;
    if (isGone && !this.#isLate) points.missing(database, call);
    const found = (result.series ?? []).flatMap(({ tags, values }) =>
      values.map(([time]) => `${scope} s=${tags!['s']} ${String(time)}`),
    );
    if (this.#isLate) points.listedLate(scope, new Set(found), this.#session);
    else points.listed(scope, new Set(found), call);
    return true;
  }

  async #deleteEvents(): Promise<void> {
    const random = this.#random;
    const [database, measurement] = this.#somePlace();
    const scope = `${database} ${measurement}`;
    const s = random.below(eventSeries);
    const [q, deleted] = random.pick([
      [`DELETE FROM ${measurement} WHERE s = '${s}'`, `${scope} s=${s}`],
      [`DROP SERIES FROM ${measurement} WHERE s = '${s}'`, `${scope} s=${s}`],
      [`DELETE FROM ${measurement}`, scope],
      [`DROP MEASUREMENT ${measurement}`, scope],
    ] as const);
    await this.#change(database, q, deleted);
  }

  async #changeDatabase(): Promise<void> {
    const [database, q] = this.#random.pick([
      ...['CREATE', 'CREATE', 'DROP'].map((verb) => {
        const name = `db${this.#era}`;
        return [name, `${verb} DATABASE ${name}`] as const;
      }),
    ]);
    await this.#change(database, q, q.startsWith('DROP') ? `${database} e` : undefined);
  }

  /** A change of a database of its own. Nothing is expected of it but that all replicas have the same of it. */
  async #changeOthers(): Promise<void> {
    const random = this.#random;
    const policy = `p${random.below(3)}`;
    const isDefault = random.chance(0.3) ? ' DEFAULT' : '';
    if (random.chance(0.4)) {
      const point = `o,s=${random.below(4)} f${random.below(4)}=1 ${1 + random.below(20)}`;
      await this.#ask('POST', `/write?db=other&rp=${random.pick(['', policy])}`, point);
      return;
    }
    const q = random.pick([
      `CREATE RETENTION POLICY ${policy} ON other DURATION INF REPLICATION 1${isDefault}`,
      `ALTER RETENTION POLICY ${policy} ON other SHARD DURATION ${1 + random.below(9)}h${isDefault}`,
      `DROP RETENTION POLICY ${policy} ON other`,
      ...['CREATE DATABASE other', 'CREATE DATABASE other', 'DROP DATABASE other'],
      ...['DROP MEASUREMENT o', `DELETE FROM o WHERE time < ${random.below(20)}`],
    ]);
    await this.#query('other', q, true);
  }

  /** `deleted`: the scope of the points that it deletes. */
  async #change(database: string, q: string, deleted: string | undefined): Promise<void> {
    const { points } = this.#world;
    const deletion = deleted === undefined ? undefined : points.deleting(deleted);
    const isOfDatabase = / DATABASE /.test(q);
    const change = isOfDatabase ? points.changing(database, q.startsWith('CREATE')) : undefined;
    const call = points.tick();
    const result = await this.#query(database, q, true);
    if (result?.error?.includes('not found') === true) {
      deletion?.refused();
      if (!isOfDatabase) points.missing(database, call);
    } else if (result !== undefined && result.error === undefined) {
      deletion?.done();
      change?.done();
    }
  }

  /** Makes the database of points that are there all the time. */
  async prepare(): Promise<void> {
    const { timeline, isOver } = this.#world;
    while (!isOver()) {
      await timeline.sleep(50);
      if (!this.#connect()) continue;
      const path = `/query?q=${encodeURIComponent('CREATE DATABASE db')}`;
      const change = this.#world.points.changing('db', true);
      const answer = await this.#ask('POST', path);
      if (answer?.text === made) return change.done();
    }
  }
}

// MONITOR across nodes: a node whose clients monitor a tenant announces this to the others periodically. The others send
// it the commands of their own clients over the message links, once an event-loop tick. Commands beyond the capacity of a
// link or a tick are dropped and counted, so that no command waits for a client in MONITOR. The frame:
//
//   varint tenant | bytes lines of MONITOR, each with its end

import type { MonitorsElsewhere } from '../../access/redis/monitors.ts';
import { beginFrame, endFrame } from '../../universal-row/protocol/frames.ts';
import { type WireReader, WireWriter } from '../../universal-row/protocol/wire.ts';

export const monitorFrame = 84;

/** Bytes of lines of one tenant in one round of the event loop. */
const roundBytes = 1024 * 1024;
/** Bytes that a link has yet to send, beyond which it takes no lines. */
const unsentBytes = 1024 * 1024;
/** Between two reminders, and how long one holds. */
const remindMs = 1000;
const holdsMs = 5000;

export interface ClusterMonitorsOptions {
  /** This one. */
  readonly node: number;
  /** False where the link to the node takes no more than it has to send already. */
  readonly send: (node: number, frame: Buffer, unsentBytes: number) => boolean;
  /** Tells all nodes in reach which tenants' commands are to be sent here; it never rejects. */
  readonly tell: (tenants: readonly number[]) => Promise<unknown>;
  /** Lines for the clients here that watch the tenant. */
  readonly heard: (tenant: number, lines: string) => void;
  /** Whether other nodes watch. */
  readonly watched: (isWatched: boolean) => void;
}

interface Watcher {
  readonly tenants: ReadonlySet<number>;
  until: number;
  /** Lines left out since the last ones that were sent, by tenant. */
  readonly missed: Map<number, number>;
}

interface Round {
  lines: string[];
  bytes: number;
  dropped: number;
}

export class ClusterMonitors implements MonitorsElsewhere {
  /** Lines that a node was not sent. */
  dropped = 0;
  readonly #options: ClusterMonitorsOptions;
  readonly #watchers = new Map<number, Watcher>();
  readonly #rounds = new Map<number, Round>();
  #wanted: readonly number[] = [];
  #reminder: NodeJS.Timeout | undefined;

  constructor(options: ClusterMonitorsOptions) {
    this.#options = options;
  }

  // ---- this node watches

  watch(tenants: readonly number[]): void {
    const { tell } = this.#options;
    this.#wanted = tenants;
    void tell(tenants);
    if (tenants.length === 0) {
      clearInterval(this.#reminder);
      this.#reminder = undefined;
    } else if (this.#reminder === undefined) {
      this.#reminder = setInterval(() => void tell(this.#wanted), remindMs);
      this.#reminder.unref();
    }
  }

  frame(reader: WireReader): void {
    const tenant = reader.varint();
    const lines = reader.bytes().toString('latin1');
    reader.done();
    if (this.#wanted.includes(tenant)) this.#options.heard(tenant, lines);
  }

  // ---- other nodes watch

  /** Another node has said which tenants it watches, or is gone. */
  watchedBy(node: number, tenants: readonly number[]): void {
    const known = this.#watchers.get(node);
    if (tenants.length === 0) this.#watchers.delete(node);
    else {
      this.#watchers.set(node, {
        tenants: new Set(tenants),
        until: performance.now() + holdsMs,
        missed: known?.missed ?? new Map<number, number>(),
      });
    }
    this.#options.watched(this.#watchers.size > 0);
  }

  show(tenant: number, line: string): void {
    let round = this.#rounds.get(tenant);
    if (round === undefined) {
      if (this.#rounds.size === 0) setImmediate(() => this.#flush());
      round = { lines: [], bytes: 0, dropped: 0 };
      this.#rounds.set(tenant, round);
    }
    round.bytes += line.length;
    if (round.bytes > roundBytes) round.dropped++;
    else round.lines.push(line);
  }

  #flush(): void {
    const now = performance.now();
    for (const [node, watcher] of this.#watchers) {
      if (watcher.until < now) this.watchedBy(node, []);
    }
    for (const [tenant, round] of this.#rounds) {
      for (const [node, watcher] of this.#watchers) {
        if (watcher.tenants.has(tenant)) this.#send(node, watcher, tenant, round);
      }
    }
    this.#rounds.clear();
  }

  #send(node: number, { missed }: Watcher, tenant: number, { lines, dropped }: Round): void {
    const before = missed.get(tenant) ?? 0;
    const text = before === 0 ? lines.join('') : this.#missedLine(before) + lines.join('');
    const isSent = this.#options.send(node, this.#frameOf(tenant, text), unsentBytes);
    const left = dropped + (isSent ? 0 : lines.length);
    this.dropped += left;
    missed.set(tenant, left + (isSent ? 0 : before));
  }

  /** As a line of MONITOR. */
  #missedLine(count: number): string {
    const seconds = (Date.now() / 1000).toFixed(6);
    return `+${seconds} [0 node:${this.#options.node}] "${count} commands are not shown"\r\n`;
  }

  #frameOf(tenant: number, text: string): Buffer {
    const writer = new WireWriter(text.length + 64);
    const start = beginFrame(writer, monitorFrame);
    writer.varint(tenant);
    writer.bytes(Buffer.from(text, 'latin1'));
    endFrame(writer, start);
    return Buffer.from(writer.view());
  }

  close(): void {
    clearInterval(this.#reminder);
  }
}

// What clients of a history did to points of time series, and what was answered: it must agree with what one copy would have answered. Times are
// counted, not measured: each call and each answer has its own.

/** A point that is written again and again, each time with another value, and never deleted. */
interface Use {
  readonly call: number;
  /** Infinity where the outcome is unknown. */
  readonly answer: number;
}

/** What one write and the reads of its value took. */
interface Cluster {
  readonly write: Use;
  firstAnswer: number;
  lastCall: number;
  reads: number;
}

/** A point that is written once. */
interface Event extends Use {
  readonly scopes: readonly string[];
}

interface Deletion {
  readonly scope: string;
  readonly call: number;
  answer: number;
}

/** That a database is made, or dropped. */
interface DatabaseChange {
  readonly database: string;
  readonly isMade: boolean;
  readonly call: number;
  answer: number;
}

/** Reads of a session see what its writes and earlier reads have seen, or later states. */
export class Session {
  /** By point. */
  readonly values = new Map<string, string>();
  readonly events = new Set<string>();
}

const before = { call: -1, answer: 0 };
const nothing = 'nothing';

export class Points {
  /** By point and value. */
  readonly #registers = new Map<string, Map<string, Cluster>>();
  readonly #events = new Map<string, Event>();
  readonly #deletions = new Set<Deletion>();
  readonly #databases: DatabaseChange[] = [];
  readonly counts = { acknowledged: 0, unknown: 0, reads: 0, lateReads: 0, deletions: 0 };
  #time = 0;

  /** Time of a call, or of an answer. */
  tick(): number {
    return ++this.#time;
  }

  #use(call: number, isDone: boolean): Use {
    if (isDone) this.counts.acknowledged++;
    else this.counts.unknown++;
    return { call, answer: isDone ? this.tick() : Infinity };
  }

  // ---- points that are written again

  #register(point: string): Map<string, Cluster> {
    let register = this.#registers.get(point);
    if (register === undefined) {
      register = new Map();
      this.#registers.set(point, register);
      register.set(nothing, { write: before, firstAnswer: 0, lastCall: -1, reads: 0 });
    }
    return register;
  }

  wrote(point: string, value: string, call: number, isDone: boolean, session?: Session): void {
    if (isDone) session?.values.set(point, value);
    const write = this.#use(call, isDone);
    const known = this.#register(point).get(value);
    if (known !== undefined) {
      // It was read before its write was answered.
      Object.assign(known, { write, firstAnswer: Math.min(known.firstAnswer, write.answer) });
      return;
    }
    this.#register(point).set(value, {
      ...{ write, firstAnswer: write.answer, lastCall: call, reads: 0 },
    });
  }

  /** `value`: undefined where the point is not there. */
  read(point: string, value: string | undefined, call: number): void {
    const answer = this.tick();
    this.counts.reads++;
    const register = this.#register(point);
    let cluster = register.get(value ?? nothing);
    if (cluster === undefined) {
      // Its write is still under way.
      const write = { call: 0, answer: Infinity };
      cluster = { write, firstAnswer: Infinity, lastCall: 0, reads: 0 };
      register.set(value!, cluster);
    }
    cluster.firstAnswer = Math.min(cluster.firstAnswer, answer);
    cluster.lastCall = Math.max(cluster.lastCall, call);
    cluster.reads++;
  }

  /** A read that may be late, but for its session. */
  readLate(point: string, value: string | undefined, session: Session | undefined): void {
    this.counts.lateReads++;
    const register = this.#register(point);
    const [seen, now] = [session?.values.get(point), value ?? nothing];
    // A write that is still under way is not before any other.
    const found = register.get(now);
    if (found === undefined) return;
    const last = seen === undefined ? undefined : register.get(seen);
    if (last !== undefined && found.write.answer < last.write.call) {
      throw new Error(`${point}: a session that has seen ${seen} is shown ${now}`);
    }
    session?.values.set(point, now);
  }

  // ---- points that are written once, and deleted

  /** `scopes`: those of deletions that delete it. */
  added(
    event: string,
    scopes: readonly string[],
    call: number,
    isDone: boolean,
    session?: Session,
  ): void {
    if (isDone) session?.events.add(event);
    this.#events.set(event, { ...this.#use(call, isDone), scopes });
  }

  /** A deletion begins. Calls of the result tell that it is done, or that it was refused. */
  deleting(scope: string): { done(): void; refused(): void } {
    this.counts.deletions++;
    const deletion = { scope, call: this.tick(), answer: Infinity };
    this.#deletions.add(deletion);
    return {
      done: () => (deletion.answer = this.tick()),
      refused: () => this.#deletions.delete(deletion),
    };
  }

  // ---- databases

  /** Calls of the result tell that it is done. */
  changing(database: string, isMade: boolean): { done(): void } {
    const change = { database, isMade, call: this.tick(), answer: Infinity };
    this.#databases.push(change);
    return { done: () => (change.answer = this.tick()) };
  }

  /** A request was answered that there is no such database. */
  missing(database: string, call: number): void {
    const answer = this.tick();
    const of = this.#databases.filter((change) => change.database === database);
    for (const made of of) {
      if (!made.isMade || made.answer >= call) continue;
      const mayBeGone = of.some(
        (one) => !one.isMade && one.call < answer && one.answer > made.call,
      );
      if (!mayBeGone) throw new Error(`${database} is missing: ${JSON.stringify({ made, call })}`);
    }
  }

  // ---- lists of points

  /** A read of all points of a scope. */
  listed(scope: string, found: ReadonlySet<string>, call: number): void {
    const answer = this.tick();
    this.counts.reads++;
    for (const [event, added] of this.#events) {
      if (!added.scopes.includes(scope)) continue;
      const of = [...this.#deletions].filter((one) => added.scopes.includes(one.scope));
      if (found.has(event)) {
        const gone = of.find((one) => one.call > added.answer && one.answer < call);
        if (gone !== undefined) {
          throw new Error(`${event} is there after its deletion: ${JSON.stringify([added, gone])}`);
        }
      } else if (added.answer < call) {
        const mayBeGone = of.some((one) => one.call < answer && one.answer > added.call);
        if (!mayBeGone) throw new Error(`${event} is lost: ${JSON.stringify({ added, call })}`);
      }
    }
  }

  /** As `listed`, of a read that may be late, but for its session. */
  listedLate(scope: string, found: ReadonlySet<string>, session: Session | undefined): void {
    this.counts.lateReads++;
    if (session === undefined) return;
    for (const event of session.events) {
      const added = this.#events.get(event)!;
      if (!added.scopes.includes(scope) || found.has(event)) continue;
      session.events.delete(event);
      const of = [...this.#deletions].filter((one) => added.scopes.includes(one.scope));
      if (of.every((one) => one.answer < added.call)) {
        throw new Error(`a session that has seen ${event} is shown it no more`);
      }
    }
    for (const event of found) if (this.#events.has(event)) session.events.add(event);
  }

  // ---- at the end

  /**
   * Whether there is an order of the uses of each point that keeps those apart that were apart, and in which each read has the value of the
   * last write (Gibbons and Korach, Testing shared memories, SIAM J. Comput. 26, 1997, section 4: each value is written once).
   */
  check(): void {
    for (const [point, register] of this.#registers) {
      const forward: { from: number; to: number; value: string }[] = [];
      const backward: typeof forward = [];
      for (const [value, { write, firstAnswer, lastCall, reads }] of register) {
        // Such a write may have had no effect.
        if (reads === 0 && write.answer === Infinity) continue;
        if (firstAnswer < write.call)
          throw new Error(`${point}: ${value} was read before its write`);
        if (firstAnswer < lastCall) forward.push({ from: firstAnswer, to: lastCall, value });
        else backward.push({ from: lastCall, to: firstAnswer, value });
      }
      forward.sort((a, b) => a.from - b.from);
      for (const [i, one] of forward.entries()) {
        const next = forward[i + 1];
        const within = backward.find(({ from, to }) => one.from < from && to < one.to);
        const wrong = next !== undefined && next.from < one.to ? next : within;
        if (wrong !== undefined) {
          throw new Error(`${point}: no order of ${JSON.stringify([one, wrong])}`);
        }
      }
    }
  }
}

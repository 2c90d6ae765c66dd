// One history: nodes, clients and faults drawn from a seed; then the faults end, and a majority must serve and agree.

import { Checker } from './checker.ts';
import { noDefect } from './defects.ts';
import type { Defect } from './defects.ts';
import { EnginePool } from './engine-pool.ts';
import { noFaults, Network } from './network.ts';
import { nodeOfReplica, replicaId } from '../raft/replica-id.ts';
import type { FsyncPolicy, MemberChange } from '../partition-log.ts';
import type { RaftGroup } from '../raft/raft-group.ts';
import { SimulatedNode } from './node.ts';
import type { HistoryResult } from './history-result.ts';
import { noRates } from './rates.ts';
import type { Rates } from './rates.ts';
import { Random, Timeline } from './timeline.ts';

const tickMs = 50;
/** Under everysec no more than that is lost. */
const lossMs = 2000;
const healedMs = 20_000;
/** Entries that must be committed once the faults have ended. */
const wantedAtEnd = 5;
const changesAtRest = 2;

class History {
  readonly #random: Random;
  readonly #timeline = new Timeline();
  readonly #checker = new Checker(() => this.#timeline.now);
  readonly #network: Network;
  readonly #nodes: SimulatedNode[];
  readonly #engines = new EnginePool();
  #failure: Error | undefined;
  #nextId = 1;
  #crashes = 0;
  #memberChanges = 0;
  #isHealed = false;
  #isQuiet = false;
  /** Most are short: many beginnings and ends find more in the same time than few long ones. */
  readonly #faultyMs: number;
  #idleUntil = 0;
  readonly #fsync: FsyncPolicy;
  /** Under a relaxed policy: any node's power may fail, else one node's after the other's. */
  readonly #mayLose: boolean;
  /** The group begins with one voter, grows to three, and shrinks to one again. */
  readonly #isOfOne: boolean;
  readonly #isOfLeases: boolean;
  /** The one that an isolated leader lost first. */
  #candidate: { node: SimulatedNode; asksForVotes: () => void } | undefined;
  /** Each seed has faults of its own kinds and rates. */
  readonly #rates: Rates;

  constructor(seed: number, defect: Defect) {
    this.#random = new Random(seed);
    const random = this.#random;
    // Some histories concern leases: an isolated leader, and a candidate that is quick to replace
    // it. Other faults would mostly come before that.
    const isOfLeases = new Random(seed ^ 0x5eed).chance(0.06);
    this.#isOfLeases = isOfLeases;
    // In some, writes are acknowledged before they are on disk.
    const relaxed = new Random(seed ^ 0xfe4ce);
    const isRelaxed = !isOfLeases && relaxed.chance(0.25);
    this.#isOfOne = !isOfLeases && new Random(seed ^ 0x501e).chance(0.25);
    // Where there is one voter, its power may fail.
    this.#mayLose = isRelaxed && (relaxed.chance(0.3) || this.#isOfOne);
    const isOften = this.#mayLose || relaxed.chance(0.5);
    this.#fsync = isRelaxed ? (isOften ? 'everysec' : 'no') : 'always';
    const isLong = random.chance(0.08);
    const leastMs = isOfLeases || isRelaxed ? 2500 : 800;
    this.#faultyMs = isLong ? 12_000 : leastMs + random.next() * 2400;
    const often = isLong ? 1 : 3;
    const rate = (most: number): number => (random.chance(0.6) ? random.next() * most : 0);
    const rates = {
      crash: rate(0.12 * often),
      pause: rate(0.06 * often),
      partition: rate(0.1 * often),
      members: rate(0.08 * often),
      links: rate(0.1 * often),
      loneliness: rate(0.06 * often),
      lostEnds: isRelaxed && !this.#mayLose ? 0.1 : 0,
    };
    this.#rates = isOfLeases ? { ...noRates, loneliness: 0.5 } : rates;
    if (this.#isOfOne) rates.members = Math.max(rates.members, 0.15 * often);
    if (isRelaxed) rates.crash = Math.max(rates.crash, 0.1 * often);
    // A node that stands still syncs nothing.
    if (this.#mayLose) rates.pause = 0;
    this.#network = new Network(this.#timeline, new Random(random.below(2 ** 32)), (_, to, bytes) =>
      this.#nodes.find(({ id }) => id === to)?.receive(bytes),
    );
    this.#network.faults = {
      loss: rate(0.1),
      duplicates: rate(0.1),
      // With a slow network several campaign in one term.
      delay: 1 + random.next() * (random.chance(0.3) ? 250 : 20),
      late: rate(0.1),
      lateDelay: 400,
      isUnordered: random.chance(0.2),
    };
    if (isOfLeases) this.#network.faults.delay = 5;
    const leases = random.chance(0.3);
    const idleTicks = random.chance(0.5) ? 4 + random.below(10) : Infinity;
    const syncMs = random.chance(0.3) && !this.#mayLose ? 60 : 4;
    const world = {
      engines: this.#engines,
      timeline: this.#timeline,
      network: this.#network,
      checker: this.#checker,
      random: new Random(random.below(2 ** 32)),
      defect,
      tickMs,
      fsync: this.#fsync,
      leases: isOfLeases || leases,
      idleTicks: isOfLeases ? Infinity : idleTicks,
      isHealed: () => this.#isHealed,
      nodes: () => this.#nodes,
      syncMs,
      slowSyncMs: this.#mayLose ? syncMs : 10 * syncMs,
      breach: (error: Error) => void (this.#failure ??= error),
      promised: (node: SimulatedNode, what: 'vote' | 'append' | 'outcome') => {
        if (what === 'vote' && this.#candidate?.node === node) this.#candidate.asksForVotes();
        // Votes are rare beside the others.
        const often = what === 'vote' ? 3 : 0.05;
        if (this.#isHealed || !random.chance(this.#rates.crash * often)) return;
        this.#timeline.after(0, () => this.#crash(node, true));
      },
    };
    // Nodes outside are of use where members change.
    const count = this.#rates.members > 0 || random.chance(0.2) ? 4 + random.below(2) : 3;
    const most = random.chance(0.15) ? count : 3;
    const members = this.#isOfOne ? 1 : most;
    const ids = Array.from({ length: count }, (_, i) => i + 1);
    const voters = ids.slice(0, members).map((id) => replicaId(id, 1));
    this.#nodes = ids.map(
      (id) => new SimulatedNode(world, id, replicaId(id, 1), id <= members ? voters : undefined),
    );
  }

  async run(seed: number): Promise<HistoryResult> {
    await this.#timeline.instead(() => this.#run());
    this.#engines.release();
    const { committed, lost, unknown, reads, staleReads } = this.#checker;
    return {
      seed,
      failure: this.#failure && `${this.#failure.name}: ${this.#failure.message}`,
      events: this.#timeline.events,
      committed,
      lost,
      unknown,
      reads,
      staleReads,
      crashes: this.#crashes,
      memberChanges: this.#memberChanges,
      isRelaxed: this.#fsync !== 'always',
      losses: this.#checker.losses,
    };
  }

  async #run(): Promise<void> {
    for (const node of this.#nodes) this.#restart(node);
    this.#clients();
    this.#faults();
    await this.#runFor(this.#faultyMs);
    await this.#heal();
    if (this.#failure === undefined) this.#finalChecks();
  }

  async #runFor(ms: number, isDone: () => boolean = () => false): Promise<void> {
    await this.#timeline.runUntil(
      this.#timeline.now + ms,
      () => this.#failure !== undefined || isDone(),
    );
  }

  /** Runs repeatedly; a thrown breach is kept. */
  #every(ms: number, act: () => void): void {
    this.#timeline.after(this.#random.next() * ms * 2, () => {
      if (this.#failure) return;
      try {
        act();
      } catch (error) {
        this.#failure ??= error as Error;
      }
      this.#every(ms, act);
    });
  }

  #clients(): void {
    this.#every(60, () => {
      if (this.#isQuiet || this.#timeline.now < this.#idleUntil) return;
      // Times without a write, in which groups fall asleep.
      if (!this.#isHealed && this.#random.chance(0.01)) {
        this.#idleUntil = this.#timeline.now + this.#random.next() * 3000;
      }
      const count = 1 + this.#random.below(3);
      const ids = Array.from({ length: count }, () => this.#nextId++);
      // Mostly sent to the leader; other nodes refuse.
      const leaders = this.#nodes.filter(({ life }) => life?.group.role === 'leader');
      const target = this.#random.pick(leaders.length > 0 ? leaders : this.#nodes);
      target.propose(ids);
    });
    this.#every(80, () => {
      if (this.#timeline.now < this.#idleUntil) return;
      // Half of them where one believes that it leads: there may be several.
      const leaders = this.#nodes.filter(({ life }) => life?.group.role === 'leader');
      const isAnywhere = leaders.length === 0 || this.#random.chance(0.5);
      this.#random.pick(isAnywhere ? this.#nodes : leaders).read();
    });
  }

  #faults(): void {
    this.#every(100, () => {
      if (this.#isHealed) return;
      const random = this.#random;
      if (random.chance(this.#rates.crash)) this.#crashSome();
      if (random.chance(this.#rates.pause)) random.pick(this.#nodes).pause(random.next() * 3000);
      if (random.chance(this.#rates.partition)) this.#partition();
      if (random.chance(this.#rates.members)) this.#changeMembers();
      if (random.chance(0.02)) this.#transfer();
      if (random.chance(0.02)) this.#switchLeases();
      if (random.chance(this.#rates.links)) this.#loseLinks();
      if (random.chance(this.#rates.loneliness)) this.#isolateLeader();
      if (random.chance(this.#rates.lostEnds)) this.#loseEnd();
    });
  }

  #crashSome(): void {
    const all = this.#random.chance(0.15);
    const victims = all ? this.#nodes : [this.#random.pick(this.#nodes)];
    for (const node of victims) {
      // Reads just before and again from the next incarnation: answers to the first read may reach
      // the second.
      if (this.#random.chance(0.5)) node.read();
      const wait = this.#random.chance(0.5) ? this.#random.next() * 60 : 0;
      this.#timeline.after(wait, () => this.#crash(node, this.#random.chance(0.7)));
    }
  }

  #crash(node: SimulatedNode, torn: boolean): void {
    if (!node.isUp || this.#isHealed) return;
    this.#crashes++;
    const others = this.#nodes.filter((other) => other !== node && other.isDoubtful);
    const isLoss = others.length > 0 || this.#isOfOne;
    if (torn && this.#mayLose && isLoss) this.#checker.mayLose(lossMs);
    node.crash(torn && (this.#fsync === 'always' || this.#mayLose || others.length === 0));
    const down = this.#random.chance(0.4) ? 20 : 1500;
    this.#timeline.after(this.#random.next() * down, () => this.#restart(node));
  }

  #restart(node: SimulatedNode): void {
    if (node.isUp || this.#failure) return;
    node.start().then(
      () => this.#random.chance(0.5) && node.read(),
      (error: unknown) => {
        this.#failure ??= error as Error;
      },
    );
  }

  #partition(): void {
    if (this.#random.chance(0.3)) return this.#cutOne();
    const side = new Set(this.#nodes.filter(() => this.#random.chance(0.5)).map(({ id }) => id));
    const oneWay = this.#random.chance(0.4);
    for (const a of this.#nodes) {
      for (const b of this.#nodes) {
        if (side.has(a.id) === side.has(b.id)) continue;
        if (!oneWay || side.has(a.id)) this.#network.cut(a.id, b.id);
      }
    }
    this.#timeline.after(200 + this.#random.next() * 2500, () => this.#network.heal());
  }

  /** One link, and the leader's mostly: others hear of it all the same. */
  #cutOne(): void {
    const one = this.#leader() ?? this.#random.pick(this.#nodes);
    const other = this.#random.pick(this.#nodes);
    this.#network.cut(one.id, other.id);
    if (this.#random.chance(0.5)) this.#network.cut(other.id, one.id);
    this.#timeline.after(200 + this.#random.next() * 2500, () => this.#network.heal());
  }

  /**
   * Isolates the leader from one other node, and from the rest when that node asks for votes or at a random time. So
   * the rest have heard from the leader just before. Busy clients continue to write at any leader, and to read at the
   * old leader.
   */
  #isolateLeader(): void {
    const leader = this.#leader();
    if (leader === undefined || this.#candidate !== undefined) return;
    const first = this.#random.pick(this.#nodes.filter((node) => node !== leader));
    const wait = this.#random.next() * 1200;
    // No writes meanwhile: the first replica has the whole log, so the others may vote for it.
    if (this.#random.chance(0.5)) this.#idleUntil = this.#timeline.now + wait;
    this.#cutOff(leader, first);
    let isAlone = false;
    const cutRest = (): void => {
      if (isAlone || this.#isHealed) return;
      isAlone = true;
      const rest = this.#nodes.filter((node) => node !== leader && node !== first);
      for (const node of rest) {
        this.#timeline.after(this.#random.next() * 20, () => this.#cutOff(leader, node));
      }
      // One that is started again still has to keep what it has promised.
      if (this.#isOfLeases && this.#random.chance(0.5)) {
        const node = this.#random.pick(rest);
        this.#timeline.after(20, () => this.#crash(node, false));
      }
      this.#useAlone(leader, 200 + this.#random.next() * 800);
    };
    this.#candidate = { node: first, asksForVotes: cutRest };
    this.#timeline.after(wait, cutRest);
  }

  /**
   * The leader commits with one voter alone, which then loses its power, and with it what it has not synced. It and the
   * other voter are left without the leader.
   */
  #loseEnd(): void {
    const leader = this.#leader();
    const voters = leader?.life?.group.status().members.voters ?? [];
    const others = this.#nodes.filter((one) => one !== leader && voters.includes(one.replica));
    if (leader === undefined || others.length !== 2) return;
    const victim = this.#random.pick(others);
    for (const one of others) if (one !== victim) this.#cutOff(leader, one);
    this.#timeline.after(50 + this.#random.next() * 300, () => {
      this.#cutOff(leader, victim);
      this.#crash(victim, true);
    });
    this.#timeline.after(1500 + this.#random.next() * 1000, () => this.#network.heal());
  }

  #cutOff(a: SimulatedNode, b: SimulatedNode): void {
    if (this.#isHealed) return;
    this.#network.cut(a.id, b.id);
    this.#network.cut(b.id, a.id);
  }

  /** Reads at the leader that is alone, and writes at others that lead, until its links are back. */
  #useAlone(leader: SimulatedNode, end: number): void {
    for (let at = 0; at < end; at += 15) {
      this.#timeline.after(at, () => {
        try {
          leader.read();
        } catch (error) {
          this.#failure ??= error as Error;
        }
        for (const node of this.#nodes) {
          if (node !== leader && node.life?.group.role === 'leader') node.propose([this.#nextId++]);
        }
      });
    }
    this.#timeline.after(end, () => {
      this.#candidate = undefined;
      this.#network.heal();
    });
  }

  /** Several lose the link to the leader, and campaign at about the same time. */
  #loseLinks(): void {
    const leader = this.#leader();
    if (leader === undefined) return;
    for (const node of this.#nodes) {
      if (node !== leader && this.#random.chance(0.6)) node.linkLost(leader.id);
    }
  }

  /** For a while, on one node after the other. */
  #switchLeases(): void {
    const time = (): number => this.#random.next() * 500;
    for (const node of this.#nodes) {
      const off = time();
      this.#timeline.after(off, () => node.setLeases(false));
      this.#timeline.after(off + 100 + time(), () => node.setLeases(true));
    }
  }

  #transfer(): void {
    const leader = this.#leader();
    if (leader) leader.life!.group.transfer(this.#random.pick(this.#nodes).replica);
  }

  #changeMembers(): void {
    const group = this.#leader()?.life?.group;
    const changes = group && this.#drawChanges(group);
    if (changes && group.changeMembers(changes)) this.#memberChanges++;
  }

  /** Undefined when no node is outside and no learner is drawn. */
  #drawChanges(group: RaftGroup): MemberChange[] | undefined {
    const { voters, learners } = group.status().members;
    const outside = this.#nodes.filter(
      ({ replica }) => !voters.includes(replica) && !learners.includes(replica),
    );
    const random = this.#random;
    if (this.#isOfOne && voters.length > 1 && random.chance(0.5)) {
      return voters.filter((one) => one !== group.replica).map(removed);
    }
    if (this.#isOfOne && voters.length === 1 && outside.length > 1 && random.chance(0.5)) {
      return outside.slice(0, 2).map(({ replica }) => ({ replica, to: 'voter' }));
    }
    if (learners.length > 0 && random.chance(0.6)) {
      const replica = random.pick(learners);
      const out = random.pick(voters);
      // Replacing a voter, or one more.
      const isReplaced = voters.length >= 3;
      return [{ replica, to: 'voter' }, ...(isReplaced ? [removed(out)] : [])];
    }
    return outside.length > 0
      ? [{ replica: random.pick(outside).replica, to: 'learner' }]
      : undefined;
  }

  #leader(): SimulatedNode | undefined {
    return this.#nodes
      .filter(({ life }) => life?.group.role === 'leader')
      .sort((a, b) => b.life!.group.status().term - a.life!.group.status().term)[0];
  }

  /** The faults end: everything must come to rest, and serve. */
  async #heal(): Promise<void> {
    if (this.#failure) return;
    this.#isHealed = true;
    this.#network.heal();
    this.#network.faults = noFaults;
    for (const node of this.#nodes) {
      node.resume();
      this.#restart(node);
    }
    const wanted = this.#checker.committed + wantedAtEnd;
    await this.#runFor(healedMs, () => this.#checker.committed > wanted);
    if (this.#failure === undefined && this.#checker.committed <= wanted) {
      this.#failure = new Error('no majority serves after the faults have ended');
    }
    await this.#changeMembersAtRest();
    await this.#readEverywhere();
    this.#isQuiet = true;
    await this.#runFor(healedMs, () => {
      const members = this.#members();
      const isAtEnd = ({ life }: SimulatedNode): boolean =>
        (life?.machine.index ?? 0) >= this.#checker.acknowledged &&
        life?.group.status().pendingProposals === 0;
      return members.length > 0 && members.every(isAtEnd);
    });
  }

  /**
   * Without faults: a change that a leader accepts is carried out while it leads, or one that was
   * already in progress.
   */
  async #changeMembersAtRest(): Promise<void> {
    for (let i = 0; i < changesAtRest && this.#failure === undefined; i++) {
      const group = this.#leader()?.life?.group;
      // The engine drops a change that comes while there may be one that is not applied.
      const isIdle = group !== undefined && group.status().applied === group.status().lastIndex;
      const changes = isIdle && this.#drawChanges(group);
      if (!changes || !group.changeMembers(changes)) {
        await this.#runFor(100);
        continue;
      }
      this.#memberChanges++;
      const { term, members } = group.status();
      const before = JSON.stringify(members);
      const leads = (): boolean => group.role === 'leader' && group.status().term === term;
      const isOther = (): boolean => JSON.stringify(group.status().members) !== before;
      const isDone = (): boolean => group.status().members.outgoing.length === 0 && isOther();
      await this.#runFor(healedMs, () => isDone() || !leads());
      if (leads() && !isDone()) {
        const text = JSON.stringify({ changes, ...group.status().members });
        this.#failure ??= new Error(`a change of members has no effect: ${text}`);
      }
    }
  }

  /** Without faults: each member answers a strong read. */
  async #readEverywhere(): Promise<void> {
    for (const node of this.#members()) {
      let isSafe = false;
      // The replica may first have to receive a snapshot.
      const end = this.#timeline.now + healedMs;
      while (!isSafe && this.#timeline.now < end && this.#failure === undefined) {
        let isOver = false;
        node.read((answer) => {
          isSafe = answer;
          isOver = true;
        });
        await this.#runFor(1500, () => isOver);
      }
      // A change that a leader did not live to see done may have removed it meanwhile.
      if (!isSafe && this.#members().includes(node))
        this.#failure ??= new Error(`${node.replica} answers no read at the end`);
    }
  }

  #members(): SimulatedNode[] {
    const members = this.#leader()?.life?.group.status().members;
    if (members === undefined) return [];
    const ids = new Set([...members.voters, ...members.learners].map(nodeOfReplica));
    return this.#nodes.filter(({ id }) => ids.has(id));
  }

  #finalChecks(): void {
    const target = this.#checker.acknowledged;
    try {
      const members = this.#members();
      if (members.length === 0) this.#checker.fail('there is no leader at the end');
      for (const { replica, life } of members) {
        const index = life?.machine.index ?? 0;
        if (index < target) this.#checker.fail(`${replica} ends at ${index}, not ${target}`);
        const { pendingProposals } = life!.group.status();
        if (pendingProposals > 0) this.#checker.fail(`${replica} has proposals without an outcome`);
      }
      const leader = this.#leader()!;
      this.#checker.complete(leader.replica, leader.life!.machine.ids);
    } catch (error) {
      this.#failure = error as Error;
    }
  }
}

function removed(replica: number): MemberChange {
  return { replica, to: 'removed' };
}

/** The same seed and defect, the same history. */
export function runHistory(seed: number, defect: Defect = noDefect): Promise<HistoryResult> {
  return new History(seed, defect).run(seed);
}

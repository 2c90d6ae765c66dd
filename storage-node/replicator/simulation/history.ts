// One history: nodes, clients and faults drawn from a seed; then the faults end, and a majority must serve and agree.

import { loadEngineModule } from '../engine/wasm-engine.ts';
import { Checker } from './checker.ts';
import { noDefect } from './defects.ts';
import type { Defect } from './defects.ts';
import { calm, Network } from './network.ts';
import { nodeOfReplica, replicaId } from '../raft/replica-id.ts';
import type { MemberChange, Members } from '../partition-log.ts';
import type { RaftGroup } from '../raft/raft-group.ts';
import { SimulatedNode } from './node.ts';
import { Random, Timeline } from './timeline.ts';

interface HistoryResult {
  seed: number;
  /** What broke, undefined when all held. */
  failure: string | undefined;
  events: number;
  committed: number;
  lost: number;
  unknown: number;
  reads: number;
  /** Of what a replica said to be old by so much. */
  staleReads: number;
  crashes: number;
  memberChanges: number;
}

const tickMs = 50;
const faultyMs = 12_000;
const healedMs = 20_000;
const nodeCount = 5;
const changesAtRest = 4;

const module = loadEngineModule();

class History {
  readonly #random: Random;
  readonly #timeline = new Timeline();
  readonly #checker = new Checker(() => this.#timeline.now);
  readonly #network: Network;
  readonly #nodes: SimulatedNode[];
  #failure: Error | undefined;
  #nextId = 1;
  #crashes = 0;
  #memberChanges = 0;
  #isHealed = false;
  #isQuiet = false;
  #idleUntil = 0;
  /** Each seed has faults of its own kinds and rates. */
  readonly #rates: {
    crash: number;
    pause: number;
    partition: number;
    members: number;
    links: number;
    loneliness: number;
  };

  constructor(seed: number, defect: Defect) {
    this.#random = new Random(seed);
    const random = this.#random;
    const rate = (most: number): number => (random.chance(0.6) ? random.next() * most : 0);
    this.#rates = {
      crash: rate(0.12),
      pause: rate(0.06),
      partition: rate(0.1),
      members: rate(0.08),
      links: rate(0.1),
      loneliness: rate(0.06),
    };
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
    };
    const world = {
      module,
      timeline: this.#timeline,
      network: this.#network,
      checker: this.#checker,
      random: new Random(random.below(2 ** 32)),
      defect,
      tickMs,
      leases: random.chance(0.3),
      idleTicks: random.chance(0.5) ? 4 + random.below(10) : Infinity,
      isHealed: () => this.#isHealed,
      nodes: () => this.#nodes,
      syncMs: random.chance(0.3) ? 60 : 4,
      breach: (error: Error) => void (this.#failure ??= error),
      promised: (node: SimulatedNode, what: 'vote' | 'append' | 'outcome') => {
        // Votes are rare beside the others.
        const often = what === 'vote' ? 3 : 0.05;
        if (this.#isHealed || !random.chance(this.#rates.crash * often)) return;
        this.#timeline.after(0, () => this.#crash(node, true));
      },
    };
    const voters = [1, 2, 3].map((id) => replicaId(id, 1));
    this.#nodes = Array.from(
      { length: nodeCount },
      (_, i) => new SimulatedNode(world, i + 1, replicaId(i + 1, 1), i < 3 ? voters : undefined),
    );
  }

  async run(seed: number): Promise<HistoryResult> {
    for (const node of this.#nodes) await node.start();
    this.#clients();
    this.#faults();
    await this.#runFor(faultyMs);
    await this.#heal();
    if (this.#failure === undefined) this.#finalChecks();
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
    };
  }

  async #runFor(ms: number, isDone: () => boolean = () => false): Promise<void> {
    await this.#timeline.runUntil(
      this.#timeline.now + ms,
      () => this.#failure !== undefined || isDone(),
    );
  }

  /** Runs again and again; what a breach throws is kept. */
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
      // To the leader mostly; what is asked of another node is refused.
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
      if (random.chance(this.#rates.links)) this.#loseLinks();
      if (random.chance(this.#rates.loneliness)) this.#isolateLeader();
    });
  }

  #crashSome(): void {
    const all = this.#random.chance(0.15);
    const victims = all ? this.#nodes : [this.#random.pick(this.#nodes)];
    for (const node of victims) {
      // Somebody reads just before, and again from the next life: answers to the first may come to that.
      if (this.#random.chance(0.5)) node.read();
      const wait = this.#random.chance(0.5) ? this.#random.next() * 60 : 0;
      this.#timeline.after(wait, () => this.#crash(node, this.#random.chance(0.7)));
    }
  }

  #crash(node: SimulatedNode, torn: boolean): void {
    if (!node.isUp) return;
    this.#crashes++;
    node.crash(torn);
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
   * The leader loses one of the others, and the rest at about the time at which that one campaigns: they have heard of
   * the leader just before. Busy clients go on writing wherever one leads, and reading at the old leader.
   */
  #isolateLeader(): void {
    const leader = this.#leader();
    if (leader === undefined) return;
    const first = this.#random.pick(this.#nodes.filter((node) => node !== leader));
    const wait = this.#random.next() * 800;
    for (const node of this.#nodes) {
      if (node === leader) continue;
      this.#timeline.after(node === first ? 0 : wait + this.#random.next() * 20, () => {
        if (this.#isHealed) return;
        this.#network.cut(leader.id, node.id);
        this.#network.cut(node.id, leader.id);
      });
    }
    const end = wait + 200 + this.#random.next() * 1500;
    for (let at = wait; at < end; at += 15) {
      this.#timeline.after(at, () => {
        leader.read();
        for (const node of this.#nodes) {
          if (node !== leader && node.life?.group.role === 'leader') node.propose([this.#nextId++]);
        }
      });
    }
    this.#timeline.after(end, () => this.#network.heal());
  }

  /** Several lose the link to the leader, and campaign at about the same time. */
  #loseLinks(): void {
    const leader = this.#leader();
    if (leader === undefined) return;
    for (const node of this.#nodes) {
      if (node !== leader && this.#random.chance(0.6)) node.linkLost(leader.id);
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
    this.#network.faults = calm;
    await this.#runFor(2500);
    for (const node of this.#nodes) this.#restart(node);
    const before = this.#checker.committed;
    await this.#runFor(healedMs, () => this.#checker.committed > before + 20);
    if (this.#failure === undefined && this.#checker.committed <= before + 20) {
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

  /** Nothing hinders anyone: a change that a leader takes is carried out while it leads. */
  async #changeMembersAtRest(): Promise<void> {
    for (let i = 0; i < changesAtRest && this.#failure === undefined; i++) {
      const group = this.#leader()?.life?.group;
      const changes = group && this.#drawChanges(group);
      if (!changes || !group.changeMembers(changes)) {
        await this.#runFor(100);
        continue;
      }
      this.#memberChanges++;
      const { term } = group.status();
      const leads = (): boolean => group.role === 'leader' && group.status().term === term;
      const isDone = (): boolean => haveHappened(changes, group.status().members);
      await this.#runFor(healedMs, () => isDone() || !leads());
      if (leads() && !isDone()) {
        const text = JSON.stringify({ changes, ...group.status().members });
        this.#failure ??= new Error(`a change of members has no effect: ${text}`);
      }
    }
  }

  /** Nothing hinders anyone: each member answers a strong read. */
  async #readEverywhere(): Promise<void> {
    for (const node of this.#members()) {
      let isSafe = false;
      // It may have to be sent the state first.
      const end = this.#timeline.now + healedMs;
      while (!isSafe && this.#timeline.now < end && this.#failure === undefined) {
        let isOver = false;
        node.read((answer) => {
          isSafe = answer;
          isOver = true;
        });
        await this.#runFor(1500, () => isOver);
      }
      if (!isSafe) this.#failure ??= new Error(`${node.replica} answers no read at the end`);
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

function haveHappened(changes: readonly MemberChange[], members: Members): boolean {
  const { voters, learners, outgoing } = members;
  return changes.every(({ replica, to }) => {
    const [isVoter, isLearner] = [voters.includes(replica), learners.includes(replica)];
    if (outgoing.length > 0) return false;
    return isVoter === (to === 'voter') && isLearner === (to === 'learner');
  });
}

/** The same seed and defect, the same history. */
export function runHistory(seed: number, defect: Defect = noDefect): Promise<HistoryResult> {
  return new History(seed, defect).run(seed);
}

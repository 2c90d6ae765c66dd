// A group of replicas behind the interface of one pod. Commands run on the leader, in this process or in another one, and
// wait for a short time while no leader is known.

import type { LocalPod, ReplicaLog } from '../../../contracts/local-pod.ts';
import type { Command, NotRun, ReadBounds } from '../../../universal-row/command.ts';
import type {
  Executor,
  Outcome,
  Refusable,
  RowCommands,
  RowObserver,
  TransactionWatch,
} from '../../../universal-row/executor.ts';
import type { MaybePromise } from '../../../universal-row/maybe-promise.ts';
import type { Reply } from '../../../universal-row/reply.ts';
import type { ChangeListener } from '../../../universal-row/row-change.ts';
import { type Attempt, attemptOf, TransactionAttempt } from './attempt.ts';
import { GroupObservers, type GroupPlace } from './group-observers.ts';
import { type GroupTick, type GroupTicks, touchingFirst } from './group-ticks.ts';
import { FollowerReads } from './follower-reads.ts';
import { LateOutcomes } from './late-outcomes.ts';
import { LeaderWait } from './leader-wait.ts';
import { maybeRun, notReached, outcomeUnknown, type RemoteExecutor } from './remote-executor.ts';
import { WriteNumbers } from './write-numbers.ts';

interface GroupExecutorOptions {
  /** Its number; 0 until the group is made, which may be after its first command. */
  readonly group: () => number;
  /** Number of this node. */
  readonly node: number;
  readonly incarnation: number;
  readonly ticks: GroupTicks;
  /** The replica of this process; undefined while there is none. */
  readonly local: () => LocalPod | undefined;
  /** The log of that. */
  readonly log?: () => ReplicaLog | undefined;
  readonly remoteOf: (node: number) => RemoteExecutor | undefined;
  /** Milliseconds that a command waits for a leader. */
  readonly waitMs: number;
  /** Reason for which a write would be refused, as far as known on this node; undefined if it would not be. */
  readonly refusalOf: (command: Refusable) => string | undefined;
  /** Called when the leader has changed: the previous leader may not have reported all changes. */
  readonly moved?: (() => void) | undefined;
  /** Returns where the rows are, for a table or partition that was moved to another group. */
  readonly successorOf?: ((number: number) => RowCommands | undefined) | undefined;
  /** The pod of this process may answer in a later tick, without a separate reply for that. */
  readonly mayWait: boolean;
  /** Whether all nodes recognize repeated transactions by their numbers. */
  readonly numbersTransactions: () => boolean;
}

/** Counters since the start. */
export interface GroupStats {
  /** Commands that wait for a leader now. */
  waiting: number;
  waited: number;
  /** Commands that were not run where they were sent first. */
  movedOn: number;
  /** Reads that a replica which does not lead has answered here. */
  readHere: number;
  /** Commands refused because there was no leader. */
  withoutLeader: number;
}

const replicasPerNode = 2 ** 20;
/** Interval, in milliseconds, between questions to replicas whether they lead. */
const retryMs = 50;
/** Limit of commands that wait for a leader of one group. */
const maxWaiting = 16_384;
/** Redirects that a command follows before it waits. */
const maxHops = 2;
export const noLeader = 'CLUSTERDOWN The partition has no leader now';
const tooManyWait =
  'CLUSTERDOWN The partition has no leader now, and too many commands wait for one';

export class GroupExecutor implements Executor {
  /** Numbers of writes sent to other processes, where these record them. */
  readonly #numbers = new WriteNumbers();
  readonly #options: GroupExecutorOptions;
  /** As in the options: asked for each command. */
  readonly #node: number;
  readonly #mayWait: boolean;
  readonly #tick: GroupTick = {
    ...{ pod: undefined, losses: 0, after: 0 },
    last: { pod: undefined, at: 0 },
  };
  readonly #observers = new GroupObservers();
  #pod: LocalPod | undefined;
  /** Number of the node that leads, as far as known; 0 if unknown. */
  #leader = 0;
  /** The last node that was known to lead. */
  #lastLeader = 0;
  /** The link to the leader; undefined if the leader is on this node. */
  #remote: RemoteExecutor | undefined;
  #replicas: readonly number[] = [];
  /** Index of the replica asked next while no leader is known. */
  #nextAsked = 0;
  /** Monotonic milliseconds of the last such question. */
  #askedAt = -Infinity;
  readonly #wait = new LeaderWait();
  readonly #late = new LateOutcomes();
  readonly #reads: FollowerReads;
  readonly #counts = { movedOn: 0, withoutLeader: 0 };
  #listener: ChangeListener | undefined;

  constructor(options: GroupExecutorOptions) {
    this.#options = options;
    this.#node = options.node;
    this.#mayWait = options.mayWait;
    this.#reads = new FollowerReads({
      group: options.group,
      log: () => options.log?.(),
      may: (pod, bounds) => this.#pod === pod && this.mayReadHere(bounds),
      elsewhere: (command, reply) => this.#findFor(command, reply),
    });
    this.localChanged();
    options.ticks.add(this);
  }

  get group(): number {
    return this.#options.group();
  }

  get stats(): GroupStats {
    const { waiting, waited } = this.#wait;
    return { waiting, waited, readHere: this.#reads.count, ...this.#counts };
  }

  /** Nodes that have replicas with a vote. */
  get replicas(): readonly number[] {
    return this.#replicas;
  }

  /** Number of the node that leads, as far as known; 0 if unknown. */
  get leader(): number {
    return this.#pod?.role === 'leader' ? this.#node : this.#leader;
  }

  /**
   * Whether commands are answered by the pod of this process, at once or into a reply of their own. Callers may then pass
   * a reply that several commands share.
   */
  get isHere(): boolean {
    return this.#pod?.isShut === false && !this.#mayWait;
  }

  /**
   * For an answer given now and sent with a later tick: to be called in that tick, which then waits for the log of the pod here.
   * Undefined where the answer depends on no pod of this process.
   */
  hold(): (() => void) | undefined {
    const pod = this.#pod;
    return pod?.role === 'leader' ? this.#holdOf(pod, pod.losses) : undefined;
  }

  #holdOf(pod: LocalPod, losses: number): () => void {
    return () => {
      const now = this.#pod;
      // Of a replica that was opened anew it is not known what it has of the command.
      if (now !== undefined) this.#options.ticks.touch(this.#tick, now, now === pod ? losses : -1);
    };
  }

  /** Where the command that has just been answered by the pod of this process has run. */
  get lastRun(): Readonly<GroupTick['last']> {
    return this.#tick.last;
  }

  /** Whether another node leads, or none: commands may have to be sent to another process. */
  get isElsewhere(): boolean {
    return this.#pod?.role !== 'leader';
  }

  /** The node that leads, if that is another one and the link to it is up: commands can be sent to it ahead of answers. */
  get remote(): RemoteExecutor | undefined {
    if (this.#leader === 0 || this.#pod?.role === 'leader') return undefined;
    if (this.#remote?.link.isUp === true) return this.#remote;
    // The node may have another link now.
    this.#remote = this.#remoteOf(this.#leader);
    return this.#remote?.link.isUp === true ? this.#remote : undefined;
  }

  #remoteOf(node: number): RemoteExecutor | undefined {
    return node === this.#node ? undefined : this.#options.remoteOf(node);
  }

  /**
   * Takes a number for a write that is sent to another process. 0 if the group has one replica, as no number is needed
   * then.
   */
  takeNumber(): number {
    return this.#replicas.length > 1 ? this.#numbers.take() : 0;
  }

  releaseNumber(number: number): void {
    this.#numbers.release(number);
  }

  /** A command was written for the link, which is to leave at the end of the tick. */
  written(remote: RemoteExecutor): void {
    this.#options.ticks.written(remote.link);
  }

  /** A command that was sent ahead was not run. */
  refusedBy(remote: RemoteExecutor, why: NotRun): void {
    this.#hasHint(why, remote);
  }

  // ---- state of the replicas
  //

  setReplicas(nodes: readonly number[]): void {
    this.#replicas = nodes;
    if (this.#leader !== 0 && !nodes.includes(this.#leader)) this.#leader = 0;
    this.localChanged();
  }

  /** Sets the leader as reported by a refusal or the placement; 0 for none. */
  leaderIs(node: number): void {
    this.localChanged();
    // This process knows the role of its own pod best.
    const isHere = this.#pod?.role === 'leader';
    const { node: own } = this.#options;
    this.#setLeader(isHere ? own : node === own ? 0 : node);
  }

  /** The pod of this process was opened or closed. */
  localChanged(): void {
    const pod = this.#options.local();
    if (pod === this.#pod) return;
    const old = this.#pod;
    this.#pod = pod;
    if (old !== undefined) {
      old.follow(undefined);
      this.#observers.forgetPlace(old);
    }
    if (this.#listener !== undefined) pod?.follow(this.#listener);
  }

  #setLeader(node: number): void {
    if (node !== this.#leader || node === 0) this.#remote = undefined;
    this.#leader = node;
    const last = this.#lastLeader;
    if (node !== 0 && node !== last) {
      if (last !== 0) this.#options.moved?.();
      this.#lastLeader = node;
    }
    this.#observers.moveTo(this.#placeOf(node));
    if (node === 0) return;
    this.#wait.wake();
    // Where it is gone, requests that it has not answered are sent to the new leader.
    if (last !== 0 && last !== node) this.#remoteOf(last)?.link.suspect();
  }

  #placeOf(node: number): GroupPlace | undefined {
    if (node === 0) return undefined;
    const { node: own, remoteOf } = this.#options;
    return node === own ? this.#pod : remoteOf(node);
  }

  /** Ends the executor's use. */
  close(): void {
    this.#wait.close();
    this.#options.ticks.delete(this);
  }

  // ---- commands

  refusal(command: Refusable): string | undefined {
    const pod = this.#pod;
    return pod?.role === 'leader' ? pod.refusal(command) : this.#options.refusalOf(command);
  }

  execute(command: Command, reply: Reply): MaybePromise<Reply | void> {
    command.notRun = undefined;
    const pod = this.#pod;
    if (pod?.isShut !== false || command.once !== undefined)
      return this.#executeLate(command, reply);
    command.bounds?.session?.moved();
    if (this.#leader !== this.#node) this.#setLeader(this.#node);
    const mark = reply.mark();
    const { losses } = pod;
    this.#touch(command, pod, losses);
    const done = pod.execute(command, reply);
    if (done instanceof Promise) {
      return this.#afterHere(done, attemptOf(command, this.#options), pod, losses, reply, mark);
    }
    if (command.notRun !== undefined)
      return this.#refusedHere(attemptOf(command, this.#options), reply, mark);
  }

  /** A command that cannot run on the pod of this process now. */
  #executeLate(command: Command, reply: Reply): MaybePromise<Reply | void> {
    const pod = this.#pod;
    if (pod?.role !== 'leader' || command.once !== undefined) {
      if (this.mayReadHere(command.bounds)) return this.#reads.read(pod!, command, reply);
      return this.#findFor(command, reply);
    }
    command.bounds?.session?.moved();
    if (this.#leader !== this.#node) this.#setLeader(this.#node);
    return this.#findWith(attemptOf(command, this.#options), reply.fork(reply.mark()));
  }

  /** A command runs, or has run, on the pod of this process: its answer waits for the log, also if a later tick has it. */
  #touch({ holds }: Command, pod: LocalPod, losses: number): void {
    this.#options.ticks.touch(this.#tick, pod, losses);
    holds?.push(this.#holdOf(pod, losses));
  }

  /**
   * Runs a command that was sent elsewhere before, and has its number, on the pod of this process, where `isHere`. If `waits` is
   * set the command has not run yet, and no later one may overtake it. `done` resolves once the outcome is known, and sets
   * `Command.notRun` if the command has to run again.
   */
  startHere(command: Command, reply: Reply): { waits: boolean; done: Promise<Reply | void> } {
    command.notRun = undefined;
    const pod = this.#pod!;
    const { losses } = pod;
    const attempt = attemptOf(command, this.#options);
    const ran = attempt.run(pod, reply, command.once !== undefined);
    const done = Promise.resolve(ran).then(async (answer) => {
      await this.#kept(attempt, pod, losses, answer ?? reply, 0);
      return answer;
    });
    return { waits: ran instanceof Promise, done };
  }

  /** Handles a refusal of a local leader for a partition that is, or was, moved to another group. */
  #refusedHere(attempt: Attempt, reply: Reply, mark: number): Promise<Reply> {
    attempt.first.notRun = undefined;
    reply.rollback(mark);
    return this.#findWith(attempt, reply.fork(mark));
  }

  /** As `#find`, with a reply of its own: commands of this process may share the caller's. */
  async #findWith(attempt: Attempt, own: Reply): Promise<Reply> {
    return (await this.#find(attempt, own)) ?? own;
  }

  /** Whether the replica of this process, which does not lead, may answer such a read. */
  mayReadHere(bounds: ReadBounds | undefined): boolean {
    return bounds !== undefined && this.#pod?.isWithin(bounds) === true;
  }

  #findFor(command: Command, reply: Reply): Promise<Reply | void> {
    command.bounds?.session?.moved();
    return this.#find(attemptOf(command, this.#options), reply);
  }

  executeAll(
    commands: readonly Command[],
    reply: Reply,
    before: (reply: Reply) => boolean,
    watch?: TransactionWatch,
  ): MaybePromise<Reply | void> {
    const [first] = commands;
    if (first === undefined) {
      before(reply);
      return;
    }
    first.notRun = undefined;
    const attempt = new TransactionAttempt([first, ...commands.slice(1)], before, watch, {
      observers: this.#observers,
      gateway: this.#options,
      isOnce: this.#options.numbersTransactions(),
    });
    const pod = this.#pod;
    if (pod?.role !== 'leader') return this.#find(attempt, reply);
    if (this.#leader !== this.#node) this.#setLeader(this.#node);
    const mark = reply.mark();
    if (pod.isShut) return this.#findWith(attempt, reply.fork(mark));
    const { losses } = pod;
    this.#touch(first, pod, losses);
    const done = attempt.run(pod, reply);
    if (done instanceof Promise) {
      return this.#afterHere(done, attempt, pod, losses, reply, mark);
    }
    if (first.notRun !== undefined) return this.#refusedHere(attempt, reply, mark);
  }

  /** Waits for a long command on the pod of this process, which may have lost its leadership before the command runs. */
  async #afterHere(
    done: Promise<Reply | void>,
    attempt: Attempt,
    pod: LocalPod,
    losses: number,
    reply: Reply,
    mark: number,
  ): Promise<Reply | void> {
    const own = await done;
    if (attempt.first.notRun === undefined) {
      // The tick in which it is answered is another one.
      this.#touch(attempt.first, pod, losses);
      return own;
    }
    attempt.first.notRun = undefined;
    if (own === undefined) reply.rollback(mark);
    else own.rollback(0);
    this.#counts.movedOn++;
    return (await this.#find(attempt, own ?? reply)) ?? own;
  }

  /** Runs the attempt on the leader, and waits while there is none. */
  async #find(attempt: Attempt, reply: Reply): Promise<Reply | void> {
    const { first } = attempt;
    // Groups that have taken over the rows may add to `holds` before the caller can set it.
    first.holds ??= [];
    // With a number the command was sent before, and its sender releases the number.
    if (!attempt.isOnce || first.once !== undefined) {
      return this.#search(attempt, reply, first.once !== undefined);
    }
    const number = this.takeNumber();
    if (number !== 0) first.once = number;
    try {
      return await this.#search(attempt, reply, false);
    } finally {
      first.once = undefined;
      this.releaseNumber(number);
    }
  }

  async #search(attempt: Attempt, reply: Reply, wasSent: boolean): Promise<Reply | void> {
    const deadline = performance.now() + this.#options.waitMs;
    const mark = reply.mark();
    let own: Reply | undefined;
    let hops = 0;
    let mayBeDone = wasSent;
    for (;;) {
      const place = this.#place();
      if (place !== undefined) {
        const answer = await this.#runAt(place, attempt, own ?? reply, mayBeDone);
        if (answer !== undefined) own = answer;
        const { notRun } = attempt.first;
        if (notRun === undefined) return own;
        if (notRun.why === 'unknown') mayBeDone = true;
        if (notRun.why === 'replaced') mayBeDone = false;
        attempt.first.notRun = undefined;
        if (own === undefined) reply.rollback(mark);
        else own.rollback(0);
        if (this.#hasHint(notRun, place) && hops++ < maxHops) continue;
      }
      const successor = mayBeDone ? undefined : this.#options.successorOf?.(attempt.first.table);
      if (successor !== undefined)
        return await this.#runAtSuccessor(successor, attempt, reply, own);
      hops = 0;
      const left = deadline - performance.now();
      // One that waits for a key is told when there is a leader.
      const isOver = left <= 0 || (attempt.first.args.hasWaited && !mayBeDone);
      if (isOver || this.#wait.waiting >= maxWaiting) {
        this.#counts.withoutLeader++;
        if (mayBeDone) {
          (own ?? reply).error(outcomeUnknown);
          attempt.first.notRun = maybeRun;
          return own;
        }
        (own ?? reply).error(isOver ? noLeader : tooManyWait);
        attempt.first.notRun = { why: 'notLeader', leader: 0 };
        return own;
      }
      await this.#wait.wait();
    }
  }

  /** Other groups have the rows by now. */
  async #runAtSuccessor(
    successor: RowCommands,
    attempt: Attempt,
    reply: Reply,
    own: Reply | undefined,
  ): Promise<Reply | void> {
    const { first } = attempt;
    if (first.isPart === true) {
      (own ?? reply).error(noLeader);
      first.notRun = { why: 'replaced', leader: 0 };
      return own;
    }
    // Its number says nothing to another group.
    first.once = undefined;
    return (await attempt.runAt(successor, own ?? reply)) ?? own;
  }

  async #runAt(
    place: GroupPlace,
    attempt: Attempt,
    reply: Reply,
    mayBeDone: boolean,
  ): Promise<Reply | undefined> {
    if ('link' in place) {
      if (attempt.onlyHere !== undefined) {
        reply.error(attempt.onlyHere);
        return undefined;
      }
      const { node } = this.#options;
      const asked = this.#leader;
      const done = attempt.run(place, reply, mayBeDone);
      this.#options.ticks.written(place.link);
      const answer = await done;
      // The replica was asked as a possible leader, and is the leader.
      if (asked === 0 && attempt.first.notRun === undefined && this.#leader === 0) {
        const leads = this.#replicas.find(
          (one) => one !== node && this.#options.remoteOf(one) === place,
        );
        if (leads !== undefined) this.#setLeader(leads);
      }
      return answer ?? undefined;
    }
    const { losses } = place;
    const { first } = attempt;
    const mark = reply.mark();
    // A write with a number is recorded by it, as it may have to run again.
    const answer = await attempt.run(place, reply, mayBeDone || first.once !== undefined);
    if (first.notRun !== undefined) return answer ?? undefined;
    if (attempt.callsScripts) this.#touch(first, place, losses);
    else await this.#kept(attempt, place, losses, answer ?? reply, answer === undefined ? mark : 0);
    return answer ?? undefined;
  }

  /**
   * Waits until the log has an attempt that has run on the pod of this process. If it is lost, or may be, it counts as not run
   * where it may run again; otherwise an error takes the place of its answer, which begins at `mark`.
   */
  async #kept(
    { first, mayRepeat }: Attempt,
    pod: LocalPod,
    losses: number,
    reply: Reply,
    mark: number,
  ): Promise<void> {
    if (first.notRun !== undefined || (await this.#late.isKept(pod, losses))) return;
    // It is not known either whether the log of an earlier attempt has it.
    if (first.once !== undefined) first.notRun = maybeRun;
    else if (mayRepeat) first.notRun = notReached;
    else {
      reply.rollback(mark);
      reply.error(outcomeUnknown);
    }
  }

  /** Where it may run: at the leader; while none is known, at one after the other, for one command at a time. */
  #place(): GroupPlace | undefined {
    this.localChanged();
    const { node: own, remoteOf } = this.#options;
    const pod = this.#pod;
    if (pod?.role === 'leader') {
      if (this.#leader !== own) this.#setLeader(own);
      return pod;
    }
    if (pod?.isPaused === true) {
      this.#leader = 0;
      return pod;
    }
    if (this.#leader === own) this.#leader = 0;
    if (this.#leader === 0 && pod !== undefined && pod.leader !== 0) {
      const node = Math.floor(pod.leader / replicasPerNode);
      if (node !== own) this.#setLeader(node);
    }
    if (this.#leader !== 0) return remoteOf(this.#leader);
    const now = performance.now();
    if (now - this.#askedAt < retryMs) return undefined;
    this.#askedAt = now;
    for (let left = this.#replicas.length; left > 0; left--) {
      const node = this.#replicas[this.#nextAsked++ % this.#replicas.length]!;
      const remote = node === own ? undefined : remoteOf(node);
      if (remote?.link.isUp === true) return remote;
    }
    return undefined;
  }

  /** Handles the reason of a refusal. True if another node is known to lead, and should be asked at once. */
  #hasHint({ why, leader }: NotRun, place: GroupPlace): boolean {
    this.#counts.movedOn++;
    const { node: own } = this.#options;
    const isLast = this.#leader === 0 || this.#placeOf(this.#leader) === place;
    if (why === 'moved' || why === 'replaced') return false;
    if (!isLast) return true;
    if (leader === 0 || leader === own || this.#placeOf(leader) === place) {
      this.#setLeader(0);
      return false;
    }
    this.#setLeader(leader);
    return true;
  }

  /** Other groups have replaced a partition of the group: observers of its rows move to them. */
  replaced(number: number, observe: RowCommands['observe']): void {
    this.#observers.moveAway(number, observe);
    this.#wait.wake();
  }

  // ---- rows that are observed, and changes

  observe(table: number, key: Buffer, observer: RowObserver): void {
    if (this.#pod?.role === 'leader') {
      if (this.#leader !== this.#node) this.#setLeader(this.#node);
    } else if (this.#leader === 0) this.#place();
    this.#observers.observe(table, key, observer);
  }

  unobserve(table: number, key: Buffer, observer: RowObserver): void {
    this.#observers.unobserve(table, key, observer);
  }

  follow(listener: ChangeListener | undefined): void {
    // Notifications wait for the log, as replies do.
    const touch = (): void => {
      const pod = this.#pod;
      if (pod !== undefined) this.#options.ticks.touch(this.#tick, pod, pod.losses);
    };
    this.#listener = listener && touchingFirst(listener, touch);
    this.#pod?.follow(this.#listener);
  }

  // ---- ticks: its `GroupTicks` ends those of all groups

  endTick(): number {
    return -1;
  }

  whenSettled(_position: number, then: (outcome: Outcome) => void): void {
    then('committed');
  }
}

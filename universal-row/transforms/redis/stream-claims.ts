// Commands that give pending entries to another consumer: XCLAIM, XAUTOCLAIM.

import type { Arguments } from '../../arguments.ts';
import { CommandError, type ReadFault, syntaxError } from '../../errors.ts';
import type { Reply } from '../../reply.ts';
import { type Row, type Rows, Shape } from '../../rows.ts';
import {
  runNow,
  shortWork,
  step,
  stepElements,
  type Steps,
  type StepTransform,
} from '../../steps.ts';
import { answerId, boundArgument, EntryAnswer, idArgument } from './stream-entries.ts';
import { claimRow, release, saveGroup } from './stream-groups.ts';
import { parseId, StreamId } from './stream-id.ts';
import {
  findEntry,
  PendingEntry,
  pendingBetween,
  StreamConsumer,
  StreamGroup,
} from './stream-layout.ts';
import { passOn } from './stream-reads.ts';
import { ByteList } from './support/byte-list.ts';
import { eachOf, eachWord, Tally } from './support/long-walks.ts';
import { integerAtLeast } from './support/ranged-integer.ts';
import { typedRow } from './support/typed-row.ts';

const badClaimIdle = new CommandError('ERR Invalid min-idle-time argument for XCLAIM');
const badAutoIdle = new CommandError('ERR Invalid min-idle-time argument for XAUTOCLAIM');
const badIdle = new CommandError('ERR Invalid IDLE option argument for XCLAIM');
const badTime = new CommandError('ERR Invalid TIME option argument for XCLAIM');
const badRetry = new CommandError('ERR Invalid RETRYCOUNT option argument for XCLAIM');
const badCount = new CommandError('ERR COUNT must be > 0');

/** Pending entries that XAUTOCLAIM looks at for each that it may claim. */
const looksPerClaim = 10;
const countByDefault = 100;
/** A claim reads and writes about a dozen records. */
const claimsPerStep = stepElements >>> 3;
const largestCount = 2 ** 63 / 16;

const group = new StreamGroup();
const pending = new PendingEntry();
const answer = new EntryAnswer();
const id = new StreamId();
const greatest = new StreamId().setMax();

function integerOr(args: Arguments, word: number, error: CommandError): number {
  const value = args.integerOrNaN(word);
  if (Number.isNaN(value)) throw error;
  return value;
}

interface Claim {
  minIdle: number;
  /** Ids are the words from 5 to before this one. */
  idsEnd: number;
  /** Undefined for now. */
  deliveredAt: number | undefined;
  /** -1 to count on. */
  deliveries: number;
  isForced: boolean;
  isJustId: boolean;
  readonly lastId: StreamId;
}

/** Reads the words from 5 on: ids, then options. There may be a million of either. */
function* readClaim(
  rows: Rows,
  args: Arguments,
): Generator<ReadFault | undefined, Claim, undefined> {
  const claim: Claim = {
    minIdle: Math.max(0, integerOr(args, 4, badClaimIdle)),
    idsEnd: 5,
    deliveredAt: undefined,
    deliveries: -1,
    isForced: false,
    isJustId: false,
    lastId: new StreamId(),
  };
  let isPastIds = false;
  let isValue = false;
  yield* eachWord(args, 5, args.count, 1, undefined, nothing, (word) => {
    if (!isPastIds && parseId(args.buf, args.starts[word]!, args.lens[word]!, false, id)) {
      claim.idsEnd = word + 1;
      return;
    }
    isPastIds = true;
    isValue = !isValue && readOption(claim, args, word, rows.now);
  });
  if (claim.deliveredAt === -1) claim.deliveredAt = undefined;
  return claim;
}

/** Whether the next word is the option's value. */
function readOption(claim: Claim, args: Arguments, word: number, now: number): boolean {
  const value = word + 1;
  const hasMore = value < args.count;
  if (args.is(word, 'FORCE')) claim.isForced = true;
  else if (args.is(word, 'JUSTID')) claim.isJustId = true;
  else {
    if (args.is(word, 'IDLE') && hasMore) {
      claim.deliveredAt = now - integerOr(args, value, badIdle);
    } else if (args.is(word, 'TIME') && hasMore) {
      claim.deliveredAt = integerOr(args, value, badTime);
    } else if (args.is(word, 'RETRYCOUNT') && hasMore) {
      claim.deliveries = integerOr(args, value, badRetry);
    } else if (args.is(word, 'LASTID') && hasMore) idArgument(args, value, false, claim.lastId);
    else throw new CommandError(`ERR Unrecognized XCLAIM option '${args.latin1(word, 128)}'`);
    return true;
  }
  return false;
}

function nothing(): void {
  // There is nothing to prepare for a step.
}

export function xclaim(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  claimRow(rows, args, group);
  if (args.count - 5 > shortWork.elements / 4) return claimInSteps;
  runNow(claimInSteps(rows, args, reply));
}

function* claimInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  const claim = yield* readClaim(rows, args);
  yield* step(() => {
    const row = claimRow(rows, args, group);
    if (claim.lastId.compare(group.last) <= 0) return;
    group.last.set(claim.lastId);
    saveGroup(rows, row, args, 2, group);
  });
  const mark = reply.open();
  const tally = new Tally();
  const claimer = new Claimer(rows, args);
  yield* eachWord(
    args,
    5,
    claim.idsEnd,
    1,
    tally,
    () => claimer.begin(),
    (word) => {
      idArgument(args, word, false, id);
      if (!claimer.claim(id, claim)) return;
      tally.value++;
      if (claim.isJustId) answerId(reply, id);
      else {
        answer.begin(rows, claimer.row);
        answer.find(reply, id);
      }
    },
    claimsPerStep,
  );
  yield* step(() => reply.close(mark, 'array', tally.value));
}

/** Gives pending entries of the group in word 2 to the consumer in word 3. */
class Claimer {
  row: Row = 0;
  /** The last entry was gone, and is pending no more. */
  hasDropped = false;
  readonly #rows: Rows;
  readonly #args: Arguments;
  readonly #consumer = new StreamConsumer();

  constructor(rows: Rows, args: Arguments) {
    this.#rows = rows;
    this.#args = args;
  }

  /** Before a step. */
  begin(): void {
    this.row = claimRow(this.#rows, this.#args, group);
  }

  /** False when the entry is not to be claimed. */
  claim(one: StreamId, how: Claim): boolean {
    const rows = this.#rows;
    const { row } = this;
    this.hasDropped = false;
    const isPending = pending.find(rows, row, group.number, one);
    if (!findEntry(rows, row, one)) {
      if (isPending) {
        release(rows, row, group, pending, one);
        saveGroup(rows, row, this.#args, 2, group);
        this.hasDropped = true;
      }
      return false;
    }
    if (!isPending && !how.isForced) return false;
    if (isPending && how.minIdle > 0 && rows.now - pending.delivered < how.minIdle) return false;
    this.#give(one, how, isPending);
    return true;
  }

  #give(one: StreamId, how: Claim, isPending: boolean): void {
    const rows = this.#rows;
    const { row } = this;
    const args = this.#args;
    const consumer = this.#consumer;
    const [s, n] = [args.starts[3]!, args.lens[3]!];
    if (!consumer.find(rows, row, group.number, args.buf, s, n)) {
      consumer.create(rows, row, group, args.buf, s, n);
    }
    consumer.seen = rows.now;
    const at = how.deliveredAt ?? rows.now;
    pending.delivered = at < 0 || at > rows.now ? rows.now : at;
    // One that is made here counts as delivered once before.
    if (!isPending) pending.deliveries = 1;
    if (how.deliveries >= 0) pending.deliveries = how.deliveries;
    else if (!how.isJustId) pending.deliveries++;
    if (isPending) {
      passOn(rows, row, pending, one, consumer);
      pending.save(rows, row, group.number, one);
    } else {
      pending.consumer = consumer.number;
      pending.add(rows, row, group.number, one);
      group.pending++;
      consumer.pending++;
      if (one.compare(group.highest) > 0) group.highest.set(one);
    }
    consumer.save(rows, row);
    saveGroup(rows, row, args, 2, group);
  }
}

// XAUTOCLAIM

interface AutoClaim {
  readonly start: StreamId;
  readonly claim: Claim;
  count: number;
}

function parseAutoClaim(args: Arguments): AutoClaim {
  const auto: AutoClaim = {
    start: new StreamId(),
    claim: {
      minIdle: Math.max(0, integerOr(args, 4, badAutoIdle)),
      idsEnd: 0,
      deliveredAt: undefined,
      deliveries: -1,
      isForced: false,
      isJustId: false,
      lastId: new StreamId(),
    },
    count: countByDefault,
  };
  boundArgument(args, 5, false, auto.start);
  for (let i = 6; i < args.count; i++) {
    if (args.is(i, 'COUNT') && i + 1 < args.count) {
      auto.count = integerAtLeast(args, ++i, 1, badCount);
      if (auto.count > largestCount) throw badCount;
    } else if (args.is(i, 'JUSTID')) auto.claim.isJustId = true;
    else throw syntaxError;
  }
  return auto;
}

export function xautoclaim(rows: Rows, args: Arguments, reply: Reply): StepTransform | void {
  const { count } = parseAutoClaim(args);
  claimRow(rows, args, group);
  if (Math.min(group.pending, count * looksPerClaim) > shortWork.elements) return autoClaimInSteps;
  runNow(autoClaimInSteps(rows, args, reply));
}

/** A pending entry that was looked at: 1 when it was claimed, 2 when it was gone. */
const Fate = { claimed: 1, gone: 2 } as const;

function* autoClaimInSteps(rows: Rows, args: Arguments, reply: Reply): Steps {
  const { start, claim, count } = parseAutoClaim(args);
  const claimer = new Claimer(rows, args);
  const fates = new ByteList();
  const next = new StreamId().set(start);
  let looks = count * looksPerClaim;
  let left = count;
  let isOver = false;
  while (looks > 0 && left > 0 && !isOver) {
    const [most, from, before] = [Math.min(looks, claimsPerStep), next, fates.mark()];
    const limit = left;
    const seen = yield* step(() => {
      fates.rollback(before);
      claimer.begin();
      return claimSome(rows, claimer, from, claim, most, limit, fates);
    });
    looks -= seen.looks;
    left -= seen.used;
    isOver = seen.isOver;
    if (!isOver) next.set(seen.next);
  }
  yield* step(() => answerNext(rows, args, reply, next, isOver));
  yield* answerFates(rows, args, reply, fates, claim.isJustId);
}

interface Looked {
  looks: number;
  /** Claimed or found to be gone. */
  used: number;
  readonly next: StreamId;
  isOver: boolean;
}

/** Looks at up to `most` pending entries from an id on, until `limit` were claimed or gone. */
function claimSome(
  rows: Rows,
  claimer: Claimer,
  from: StreamId,
  claim: Claim,
  most: number,
  limit: number,
  fates: ByteList,
): Looked {
  const ids: StreamId[] = [];
  const range = pendingBetween(group.number, undefined, from, greatest);
  rows.eachStreamRecord(claimer.row, range.from, range.to, false, most, (kb, ks) => {
    const one = new StreamId();
    one.read(kb, ks + range.prefix);
    ids.push(one);
    return ids.length >= most;
  });
  const looked: Looked = { looks: 0, used: 0, next: new StreamId(), isOver: false };
  const text = Buffer.alloc(32);
  for (const one of ids) {
    if (looked.used === limit) break;
    looked.looks++;
    const isClaimed = claimer.claim(one, claim);
    looked.next.set(one).increment();
    if (!isClaimed && !claimer.hasDropped) continue;
    looked.used++;
    fates.add(text, 0, one.write(text, 0), isClaimed ? Fate.claimed : Fate.gone);
  }
  looked.isOver = ids.length < most && looked.looks === ids.length;
  return looked;
}

/** Answers an array of three with the id to continue from, 0-0 when there is nothing behind. */
function answerNext(
  rows: Rows,
  args: Arguments,
  reply: Reply,
  next: StreamId,
  isOver: boolean,
): void {
  const cursor = new StreamId();
  if (!isOver) {
    const row = claimRow(rows, args, group);
    const { from, to, prefix } = pendingBetween(group.number, undefined, next, greatest);
    rows.eachStreamRecord(row, from, to, false, 1, (kb, ks) => {
      cursor.read(kb, ks + prefix);
      return true;
    });
  }
  reply.array(3);
  answerId(reply, cursor);
}

function* answerFates(
  rows: Rows,
  args: Arguments,
  reply: Reply,
  fates: ByteList,
  isJustId: boolean,
): Steps {
  for (const fate of [Fate.claimed, Fate.gone]) {
    let of = 0;
    for (let i = 0; i < fates.count; i++) if (fates.score(i) === fate) of++;
    yield* step(() => reply.array(of));
    yield* eachOf(fates.count, (i) => {
      if (fates.score(i) !== fate) return;
      id.read(fates.buf, fates.start(i));
      if (isJustId || fate === Fate.gone) return answerId(reply, id);
      answer.begin(rows, typedRow(rows, args, 1, Shape.stream));
      answer.find(reply, id);
    });
  }
}

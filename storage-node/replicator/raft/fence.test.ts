import { expect, test } from 'vitest';
import { emptyConf, MessageType } from '../engine/frames.ts';
import type { Message } from '../engine/frames.ts';
import { FencedType, isGrant, marked, VoteCount } from './fence.ts';
import { askMessage } from './read-rounds.ts';

const conf = { ...emptyConf, voters: [1, 2, 3, 4, 5] };

function vote(from: number, term = 7, type: number = MessageType.voteResponse): Message {
  return askMessage(type, { from, to: 1, term }, 0);
}

/** Who of those told the engine has granted. */
function counted(votes: VoteCount, message: Message, isFenced = false): number[] {
  return votes.add(message, isFenced, conf).map(({ from, type }) => {
    expect(type).toBe(MessageType.voteResponse);
    return from;
  });
}

test('votes of a fenced replica are marked, refusals are not', () => {
  expect(marked(vote(2)).type).toBe(FencedType.vote);
  expect(marked(vote(2, 7, MessageType.preVoteResponse)).type).toBe(FencedType.preVote);
  expect(marked({ ...vote(2), reject: true }).type).toBe(MessageType.voteResponse);
  expect(marked(vote(2, 7, MessageType.append)).type).toBe(MessageType.append);
  expect(isGrant(marked(vote(2)))).toBe(true);
  expect(isGrant({ ...vote(2), reject: true })).toBe(false);
});

test('a majority without a fence is enough, those with one wait for all', () => {
  const votes = new VoteCount(1);
  expect(counted(votes, vote(2, 7, FencedType.vote))).toEqual([]);
  expect(counted(votes, vote(3))).toEqual([]);
  expect(counted(votes, vote(4))).toEqual([2, 3, 4]);
  expect(counted(votes, vote(5))).toEqual([5]);
  expect(votes.decidedByAll).toBe(0);
});

test('without such a majority all must have granted', () => {
  const votes = new VoteCount(1);
  expect(counted(votes, vote(2, 7, FencedType.vote))).toEqual([]);
  expect(counted(votes, vote(3, 7, FencedType.vote))).toEqual([]);
  expect(counted(votes, vote(4))).toEqual([]);
  expect(counted(votes, vote(4))).toEqual([]);
  expect(counted(votes, vote(5, 7, FencedType.vote))).toEqual([2, 3, 4, 4, 5]);
  expect(votes.decidedByAll).toBe(1);
});

test('a fenced candidate does not count itself', () => {
  const votes = new VoteCount(1);
  expect(counted(votes, vote(2), true)).toEqual([]);
  expect(counted(votes, vote(3), true)).toEqual([]);
  expect(counted(votes, vote(4), true)).toEqual([2, 3, 4]);
});

test('each term is counted by itself, and each half of a joint configuration', () => {
  const votes = new VoteCount(1);
  counted(votes, vote(2));
  expect(counted(votes, vote(3, 8))).toEqual([]);
  expect(counted(votes, vote(4, 7))).toEqual([]);
  expect(counted(votes, vote(4, 8))).toEqual([3, 4]);
  const joint = { ...emptyConf, voters: [1, 2, 3], outgoing: [1, 4, 5] };
  expect(votes.add(vote(2, 9), false, joint)).toEqual([]);
  expect(votes.add(vote(3, 9), false, joint)).toEqual([]);
  expect(votes.add(vote(4, 9), false, joint)).toHaveLength(3);
});

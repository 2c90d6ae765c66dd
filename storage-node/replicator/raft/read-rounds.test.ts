import { expect, test } from 'vitest';
import { emptyConf } from '../engine/frames.ts';
import { AskType, askMessage, ReadRounds } from './read-rounds.ts';

const conf = { ...emptyConf, voters: [1, 2, 3] };
const leadership = { term: 4, commit: 9, conf, canAsk: () => true };

function rounds() {
  const all = new ReadRounds(1);
  const answered: string[] = [];
  return {
    all,
    answered,
    read: (name: string) => all.add(100, () => answered.push(name)),
    answer: (from: number, number: number, term = 4) => {
      const message = askMessage(AskType.answer, { from, to: 1, term }, number);
      const round = all.answer(message, conf);
      for (const { then } of round?.readers ?? []) then(true);
      return round;
    },
  };
}

test('reads that come while a question is under way wait for the next one', () => {
  const { all, answered, read, answer } = rounds();
  read('a');
  read('b');
  expect(all.question(0, leadership)).toEqual({ number: 1, voters: [2] });
  read('c');
  expect(all.question(0, leadership)).toBeUndefined();
  expect(answer(2, 1)?.index).toBe(9);
  expect(answered).toEqual(['a', 'b']);
  expect(all.question(0, leadership)).toEqual({ number: 2, voters: [2] });
  answer(2, 1);
  expect(answered).toEqual(['a', 'b']);
  answer(2, 2);
  expect(answered).toEqual(['a', 'b', 'c']);
  expect(all.count).toBe(0);
});

test('after a tick all are asked, and then those first that have answered', () => {
  const { all, answered, read, answer } = rounds();
  read('a');
  all.question(0, leadership);
  expect(all.again(0, leadership)).toBeUndefined();
  expect(all.again(1, leadership)).toEqual({ number: 1, voters: [2, 3] });
  answer(3, 1);
  expect(answered).toEqual(['a']);
  read('b');
  expect(all.question(2, leadership)).toEqual({ number: 2, voters: [3] });
});

test('answers of other terms, and those of a minority, are no answers', () => {
  const { all, answered, read, answer } = rounds();
  read('a');
  const voters = [1, 2, 3, 4, 5];
  const five = { ...leadership, conf: { ...conf, voters } };
  expect(all.question(0, five)?.voters).toEqual([2, 3]);
  answer(2, 1, 3);
  answer(3, 1, 5);
  expect(answered).toEqual([]);
  const second = askMessage(AskType.answer, { from: 2, to: 1, term: 4 }, 1);
  expect(all.answer(second, five.conf)).toBeUndefined();
  const third = askMessage(AskType.answer, { from: 3, to: 1, term: 4 }, 1);
  expect(all.answer(third, five.conf)?.readers).toHaveLength(1);
});

test('both halves of a joint configuration are asked', () => {
  const { all, read } = rounds();
  read('a');
  const joint = { ...leadership, conf: { ...conf, voters: [1, 2, 4], outgoing: [1, 2, 3] } };
  expect(all.question(0, joint)?.voters).toEqual([2, 4, 3]);
  const answer = (from: number) =>
    all.answer(askMessage(AskType.answer, { from, to: 1, term: 4 }, 1), joint.conf);
  expect(answer(4)).toBeUndefined();
  expect(answer(3)?.readers).toHaveLength(1);
});

test('a question that nobody answers is given up, with the reads behind it', () => {
  const { all, read } = rounds();
  read('a');
  all.question(0, leadership);
  read('b');
  expect(all.takeLate(5)).toEqual([]);
  expect(all.takeLate(6)).toHaveLength(2);
  expect(all.count).toBe(0);
});

test('voters that answer no questions are not asked', () => {
  const none = { ...leadership, canAsk: (one: number) => one === 3 };
  expect(ReadRounds.isPossible(1, none)).toBe(true);
  expect(ReadRounds.isPossible(1, { ...none, canAsk: () => false })).toBe(false);
  const { all, read } = rounds();
  read('a');
  expect(all.question(0, none)?.voters).toEqual([3]);
});

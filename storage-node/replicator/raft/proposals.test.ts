import { expect, test } from 'vitest';
import { Proposals } from './proposals.ts';

class Told {
  readonly outcomes: string[] = [];
  readonly proposals = new Proposals({
    onOutcome: (position, outcome, index) => {
      this.outcomes.push(`${position} ${outcome} ${index}`);
    },
    onRole: () => undefined,
  });

  add(count = 1): number {
    const first = this.proposals.take();
    for (let i = 1; i < count; i++) this.proposals.take();
    this.proposals.add(first, count, new Uint8Array(count));
    return first;
  }
}

test('each proposal of an entry is told its outcome, in order', () => {
  const t = new Told();
  const first = t.add(2);
  t.proposals.place(first, 5);
  t.proposals.committed(5, first);
  expect(t.outcomes).toEqual(['1 committed 5', '2 committed 5']);
  expect(t.proposals.count + t.proposals.bytes).toBe(0);
});

test('what another entry at its index has replaced is lost', () => {
  const t = new Told();
  t.proposals.place(t.add(), 5);
  t.proposals.place(t.add(), 6);
  t.proposals.committed(4, 0);
  expect(t.outcomes).toEqual([]);
  t.proposals.committed(5, 0);
  expect(t.outcomes).toEqual(['1 lost 0']);
  t.proposals.committed(6, 2);
  expect(t.outcomes).toEqual(['1 lost 0', '2 committed 6']);
});

test('an outcome waits for those before it', () => {
  const t = new Told();
  t.proposals.place(t.add(), 5);
  t.proposals.refuse(t.add());
  expect(t.outcomes).toEqual([]);
  t.proposals.committed(5, 1);
  expect(t.outcomes).toEqual(['1 committed 5', '2 lost 0']);
});

test('a snapshot leaves unknown what it may hold, and the end all that is left', () => {
  const t = new Told();
  t.proposals.place(t.add(), 5);
  t.proposals.place(t.add(), 9);
  t.proposals.forget(7);
  expect(t.outcomes).toEqual(['1 unknown 0']);
  t.proposals.forget(Infinity);
  expect(t.outcomes).toEqual(['1 unknown 0', '2 unknown 0']);
});

test('what never had an index is lost with the leadership', () => {
  const t = new Told();
  t.proposals.place(t.add(), 5);
  t.add();
  t.proposals.refuseUnplaced();
  expect(t.outcomes).toEqual([]);
  t.proposals.committed(5, 1);
  expect(t.outcomes).toEqual(['1 committed 5', '2 lost 0']);
});

test('what was taken in an earlier leadership is told in the end, whoever comes after', () => {
  const t = new Told();
  // Another leader has cut the log off before it; nothing is ever committed at this index.
  t.proposals.place(t.add(), 9);
  const { next } = t.proposals;
  t.proposals.place(t.add(), 6);
  t.proposals.forgetBefore(next);
  expect(t.outcomes).toEqual(['1 unknown 0']);
  t.proposals.committed(6, 2);
  expect(t.outcomes).toEqual(['1 unknown 0', '2 committed 6']);
});

import { expect, test } from 'vitest';
import { NewConnections } from './new-connections.ts';

class Held {
  isPaused = false;
  pause(): this {
    this.isPaused = true;
    return this;
  }
  resume(): this {
    this.isPaused = false;
    return this;
  }
}

const isRead = ({ isPaused }: Held): boolean => !isPaused;
const asSockets = (all: Held[]) => all as unknown as Parameters<NewConnections['add']>[0][];

test('while requests wait, connections without one are not read; they are again, some in each round', async () => {
  const waiting = { size: 0 };
  const connections = new NewConnections(waiting);
  const all = Array.from({ length: 200 }, () => new Held());
  for (const one of asSockets(all)) connections.add(one);
  waiting.size = 100;
  for (let n = 0; n < 12; n++) connections.hold();
  expect(connections.held).toBe(192);
  expect(all.filter(isRead)).toHaveLength(8);
  await new Promise(setImmediate);
  expect(connections.held).toBe(192);
  waiting.size = 10;
  let before = 192;
  while (connections.held > 0) {
    await new Promise(setImmediate);
    expect(before - connections.held).toBeLessThanOrEqual(32);
    before = connections.held;
  }
  expect(all.every(isRead)).toBe(true);
});

test('connections that have sent a request, or are closed, are left alone', () => {
  const connections = new NewConnections({ size: 100 });
  const all = Array.from({ length: 4 }, () => new Held());
  for (const one of asSockets(all)) connections.add(one);
  connections.delete(asSockets(all)[0]!);
  connections.hold();
  expect(all.map(isRead)).toEqual([true, false, false, false]);
  connections.delete(asSockets(all)[1]!);
  expect(connections.held).toBe(2);
});

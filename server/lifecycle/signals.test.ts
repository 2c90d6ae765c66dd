import { afterEach, beforeEach, expect, test } from 'vitest';
import { onStopSignals } from './signals.ts';

const names = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;
let before: Map<string, NodeJS.SignalsListener[]>;
let events: (string | number)[];
let time: number;

beforeEach(() => {
  before = new Map(names.map((name) => [name, process.listeners(name)]));
  events = [];
  time = 1000;
  onStopSignals(
    (signal) => events.push(signal),
    (code) => events.push(code),
    { now: () => time, monotonic: () => time },
  );
});

afterEach(() => {
  for (const name of names) {
    for (const listener of process.listeners(name)) {
      if (!before.get(name)!.includes(listener)) process.off(name, listener);
    }
  }
});

function send(signal: (typeof names)[number], afterMs = 0): void {
  time += afterMs;
  // Only our listener: the test runner has its own.
  process.listeners(signal).at(-1)!(signal);
}

test('the first signal stops, a second one ends at once with the code of a shell', () => {
  send('SIGTERM');
  send('SIGINT', 1000);
  expect(events).toEqual(['SIGTERM', 130]);
});

test('SIGTERM twice', () => {
  send('SIGTERM');
  send('SIGTERM', 5000);
  expect(events).toEqual(['SIGTERM', 143]);
});

test('one wish that arrives twice is not two', () => {
  send('SIGINT');
  send('SIGINT', 10);
  expect(events).toEqual(['SIGINT']);
});

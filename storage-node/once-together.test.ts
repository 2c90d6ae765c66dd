// Transactions that a gateway sends again, on a pod with its log.

import { beforeEach, expect, test } from 'vitest';
import type { Command } from '../universal-row/command.ts';
import type { NumberedWrite } from '../universal-row/once.ts';
import { executeTogether } from '../universal-row/once-together.ts';
import { copyValues, ValueWriter } from '../universal-row/protocol/values.ts';
import { WireReader } from '../universal-row/protocol/wire.ts';
import { PodFixture, TextReply } from './pod-fixture.ts';

let f: PodFixture;
let number: number;
beforeEach(async () => {
  f = await PodFixture.open();
  number = 65_536;
});

interface Sent {
  isClean?: boolean | (() => boolean);
  incarnation?: number;
  commands?: (Command | string)[];
  /** They answer into a reply of their own, as commands that have waited do. */
  hasWaited?: boolean;
}

/** What a transaction is answered: `run` or `not run`, and its values. */
async function send(lines: readonly (string | Command)[], sent: Sent = {}): Promise<string> {
  const { isClean = true, incarnation = 1, hasWaited = false } = sent;
  const write: NumberedWrite = { node: 3, incarnation, number, first: 0 };
  const commands = lines.map((one) => (typeof one === 'string' ? f.command(one) : one));
  const shared = new ValueWriter(256);
  const reply = hasWaited ? shared.fork(0) : shared;
  let begun = '';
  const own = await executeTogether(f.pod, commands, reply, write, {
    isClean: () => (typeof isClean === 'function' ? isClean() : isClean),
    begin: (_, hasRun) => {
      begun = hasRun ? 'run' : 'not run';
    },
  });
  const { buf, pos } = (own ?? reply) as ValueWriter;
  const text = new TextReply();
  copyValues(new WireReader(buf, 0, pos), text);
  return `${begun} ${text.toString()}`.trim();
}

const twice = ['put a 1', 'push list TAIL x', 'get a'];

test('a transaction that is sent again is answered as before, and done once', async () => {
  expect(await send(twice)).toBe('run OK OK 1');
  f.run('put a 2');
  expect(await send(twice)).toBe('run OK OK 1');
  expect(f.run('get a')).toBe('2');
  await f.safe();
  await f.crash();
  expect(await send(twice)).toBe('run OK OK 1');
  expect(f.run('get a')).toBe('2');
  number += 65_536;
  expect(await send(twice)).toBe('run OK OK 1');
  expect(f.run('get a')).toBe('1');
});

test('a read at its beginning is of the state that it ran on', async () => {
  const lines = ['get a', 'put a 1', 'get a'];
  expect(await send(lines)).toBe('run (nil) OK 1');
  expect(await send(lines)).toBe('run (nil) OK 1');
});

test('errors are part of the answer, the last one too', async () => {
  const lines = ['put a 1', 'field a f 1', 'stumble b 1'];
  const answer = await send(lines);
  expect(answer).toMatch(/^run OK \(error\) .* \(error\) ERR stumbled$/);
  f.run('put a 2');
  expect(await send(lines)).toBe(answer);
  expect(f.run('get a')).toBe('2');
});

test('what has waited is answered as before, too', async () => {
  const lines = ['put a 1', 'push list TAIL x', 'get a'];
  expect(await send(lines, { hasWaited: true })).toBe('run OK OK 1');
  f.run('put a 2');
  expect(await send(lines)).toBe('run OK OK 1');
});

test('a long answer is lost, and the transaction still done once', async () => {
  const lines = [`put a ${'x'.repeat(2000)}`, 'get a', 'push list TAIL x'];
  expect(await send(lines)).toMatch(/^run OK x+ OK$/);
  f.run('put a 2');
  const lost = '(error) ERR the command was done, and its answer is lost';
  expect(await send(lines)).toBe(`run ${lost} ${lost} ${lost}`);
  expect(f.run('get a')).toBe('2');
});

test('where a watched row was touched it is answered from the record, or never done', async () => {
  expect(await send(twice)).toBe('run OK OK 1');
  expect(await send(twice, { isClean: false })).toBe('run OK OK 1');
  number += 65_536;
  f.run('put a 2');
  expect(await send(twice, { isClean: false })).toBe('not run');
  expect(await send(twice, { isClean: false })).toBe('not run');
  // The first attempt, which comes late.
  const unknown = '(error) ERR outcome unknown';
  expect(await send(twice)).toBe(`run ${unknown} ${unknown} ${unknown}`);
  expect(f.run('get a')).toBe('2');
  number += 65_536;
  let looks = 0;
  expect(await send(twice, { isClean: () => ++looks === 1 })).toBe('not run');
  expect(f.run('get a')).toBe('2');
});

test('a transaction that was done is answered as before where it is refused by now', async () => {
  const lines = ['get a', 'put a 1', 'push list TAIL x'];
  expect(await send(lines)).toBe('run (nil) OK OK');
  const rule = f.tables.get(0)!;
  rule.readOnly = true;
  expect(await send(lines)).toBe('run (nil) OK OK');
  expect(await send(lines.slice(1), { isClean: false })).toBe('run (nil) OK');
  expect(await send(lines, { isClean: false })).toBe('run (nil) OK OK');
  rule.readOnly = false;
  rule.quota = { refusal: () => 'OOM full', excess: () => ({ bytes: 0, rows: 0 }), freed() {} };
  expect(await send(lines)).toBe('run (nil) OK OK');
  // One that was not done is refused; what was done of it is answered the same again.
  number += 65_536;
  expect(await send(['put a 2'])).toBe('run (error) OOM full');
  number += 65_536;
  const some = ['drop a', 'put a 2'];
  expect(await send(some)).toBe('run OK (error) OOM full');
  rule.quota = undefined;
  expect(await send(some)).toBe('run OK (error) OOM full');
  expect(f.run('get a')).toBe('(nil)');
});

test('the gateway runs its own commands again', async () => {
  let asked = 0;
  const local = (): Command => ({
    ...f.command('get a'),
    isLocal: true,
    transform: (_rows, _args, reply) => reply.integer(++asked),
  });
  expect(await send(['put a 1', local(), 'get a'])).toBe('run OK 1 1');
  // What a pod elsewhere has recorded has no answer of them, nor has this one's own.
  number += 65_536;
  expect(await send(['put a 3', 'get a'])).toBe('run OK 3');
  expect(await send(['put a 3', local(), 'get a'])).toBe('run OK 2 3');
});

test('an attempt of an earlier life of the gateway is not done', async () => {
  expect(await send(twice, { incarnation: 2 })).toBe('run OK OK 1');
  f.run('put a 2');
  const unknown = '(error) ERR outcome unknown';
  expect(await send(twice)).toBe(`run ${unknown} ${unknown} ${unknown}`);
  expect(f.run('get a')).toBe('2');
});

// Pods of rows behind a TCP link: a gateway's executor at one end, a pod at the other.

import { createHash } from 'node:crypto';
import { connect } from 'node:net';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { PodLink } from '../../access/gateway/pods/pod-link.ts';
import { outcomeUnknown, RemoteExecutor } from '../../access/gateway/pods/remote-executor.ts';
import { LongAnswer } from '../../access/redis/resp-writer.ts';
import { ClusterListener } from '../../cluster-links/cluster-listener.ts';
import { PodFixture, TextReply } from '../../storage-node/pod-fixture.ts';
import { PodServer } from '../../storage-node/pod-server/pod-server.ts';
import { Arguments } from '../../universal-row/arguments.ts';
import type { Command } from '../../universal-row/command.ts';
import type { TransactionWatch } from '../../universal-row/executor.ts';
import { FrameReader, writeFrame } from '../../universal-row/protocol/frames.ts';
import { ClientHandshake } from '../../universal-row/protocol/hello.ts';
import { Answer, RowFrame } from '../../universal-row/protocol/row-messages.ts';
import { ValueWriter } from '../../universal-row/protocol/values.ts';
import { WireWriter } from '../../universal-row/protocol/wire.ts';
import type { Reply } from '../../universal-row/reply.ts';
import { RowWork } from '../../universal-row/row-work.ts';
import { transformNamed } from '../../universal-row/transforms/redis/registry.ts';
import { TcpProxy } from '../metadata/tcp-proxy.ts';

const secret = Buffer.from('the secret of the test');
const identity = { cluster: 'test', node: 'node', incarnation: 1, level: 1 };
const span = { first: 0, count: 16 };

let fixture: PodFixture;
let listener: ClusterListener;
let proxy: TcpProxy;
let link: PodLink;
let pods: RemoteExecutor;
let warnings: string[];
let published: string[];

function newLink(port: number, key = secret): PodLink {
  return new PodLink({
    host: '127.0.0.1',
    port,
    context: { identity: { ...identity, node: 'gateway' }, secret: key },
    report: (_level, message) => warnings.push(message),
  });
}

beforeEach(async () => {
  warnings = [];
  published = [];
  fixture = await PodFixture.open({ rules: { 0: {}, 1: {} } });
  const server = new PodServer({
    podOf: (table) => (table < 2 ? { executor: fixture.pod, mayWait: false } : undefined),
    answer: (question) => ({ asked: question }),
    publish: (tenant, { channel, payload, isSharded }) => {
      published.push(
        `${tenant} ${String(channel)} ${String(payload)}${isSharded ? ' sharded' : ''}`,
      );
    },
    report: (_level, message) => warnings.push(message),
    failed: (error) => {
      throw error;
    },
  });
  listener = new ClusterListener({ identity, secret }, (_level, message) => {
    warnings.push(message);
  });
  listener.serve('pods', server);
  await listener.listen('127.0.0.1', 0);
  proxy = await TcpProxy.start(listener.port);
  link = newLink(proxy.port);
  pods = new RemoteExecutor(link, () => undefined);
  await link.start();
});

afterEach(async () => {
  link.close();
  await proxy.close();
  await listener.close();
  await fixture.pod.close();
});

function command(words: readonly (string | Buffer)[], table = 0): Command {
  const bytes = words.map((word) => Buffer.from(word as string));
  const args = new Arguments();
  args.reserve(bytes.length);
  args.buf = Buffer.concat(bytes);
  let at = 0;
  for (const word of bytes) {
    args.starts[args.count] = at;
    args.lens[args.count++] = word.length;
    at += word.length;
  }
  const name = String(words[0]).toLowerCase();
  const named = transformNamed(name);
  const run = named?.run ?? (() => {});
  const action = named?.action ?? 0;
  return { action, name, transform: run, grows: false, table, span, args };
}

function textOf(answer: Reply): string {
  return (answer as TextReply).toString();
}

async function run(...words: (string | Buffer)[]): Promise<string> {
  const reply = new TextReply();
  const long = await pods.execute(command(words), reply);
  return textOf(long ?? reply);
}

async function runAll(lines: readonly string[], watch?: TransactionWatch): Promise<string> {
  const reply = new TextReply();
  const commands = lines.map((line) => command(line.split(' ')));
  const long = await pods.executeAll(
    commands,
    reply,
    (own) => {
      if (watch?.dirty !== true) own.array(commands.length);
      else own.nilArray();
      return watch?.dirty !== true;
    },
    watch,
  );
  return textOf(long ?? reply);
}

const watching = (): TransactionWatch => ({ dirty: false, rowChanged: () => {} });

test('a command that waits keeps to what it has found out', async () => {
  await run('xadd', 's', '1-0', 'a', '1');
  const read = command(['xread', 'block', '0', 'streams', 's', '$']);
  const reply = new TextReply();
  await pods.execute(read, reply);
  expect(String(reply)).toBe('');
  await run('xadd', 's', '2-0', 'a', '2');
  read.args.hasWaited = true;
  await pods.execute(read, reply);
  expect(String(reply)).toBe('*1 *2 s *1 *2 2-0 *2 a 2');
});

test('commands are run by the pod, and answered', async () => {
  expect(await run('set', 'a', '1')).toBe('OK');
  expect(await run('incr', 'a')).toBe('2');
  expect(await run('get', 'a')).toBe('2');
  expect(await run('rpush', 'l', 'x', 'y')).toBe('2');
  expect(await run('lrange', 'l', '0', '-1')).toBe('*2 x y');
  expect(await run('lrange', 'a', '0', '-1')).toMatch(/^\(error\) WRONGTYPE/);
  expect(await run('blpop', 'nothing', '0')).toBe('');
});

test('what a command did is counted at the gateway as it is by the pod', async () => {
  const here = new RowWork();
  const there = new RowWork();
  for (const [executor, key, work] of [
    [pods, 'a', here],
    [fixture.pod, 'b', there],
  ] as const) {
    const lines = [
      ['rpush', key, 'some', 'elements'],
      ['lrange', key, '0', '-1'],
      ['del', key],
    ];
    for (const words of lines) {
      await executor.execute({ ...command(words), work }, new TextReply());
    }
  }
  expect(here).toEqual(there);
  expect(here.lookups).toBe(3);
});

test('values and answers larger than a frame', async () => {
  const value = Buffer.alloc(20 * 1024 * 1024, 'v');
  expect(await run('set', 'big', value)).toBe('OK');
  expect(await run('strlen', 'big')).toBe(String(value.length));
  expect((await run('get', 'big')).length).toBe(value.length);
  for (let i = 0; i < 20; i++) {
    const fields = Array.from({ length: 1000 }, (_, n) => [`${i}-${n}`, 'x'.repeat(100)]);
    await run('hset', 'h', ...fields.flat());
  }
  const whole = await run('hgetall', 'h');
  expect(whole.length).toBeGreaterThan(20_000 * 100);
  expect(whole.startsWith('%20000 ')).toBe(true);
});

/** A writer of answers of the given size at most. */
function answerWithin(bytes: number): LongAnswer {
  let left = bytes;
  const keeper = { countError: () => {}, keepAnswer: (n: number) => (left -= n) >= 0 };
  return new LongAnswer(keeper);
}

test('an answer for which the gateway has no memory is an error, and others go on', async () => {
  for (const key of ['a', 'b']) await run('set', key, 'x'.repeat(100_000));
  const words = ['a', 'missing', 'b', 'a', 'a', 'b'];
  const one = answerWithin(0);
  const all = answerWithin(300_000);
  const error = /^-OOM [^\r]*\r\n$/;
  const single = Promise.resolve(pods.execute(command(['mget', ...words]), one));
  const isBegun = (reply: Reply): boolean => {
    reply.array(words.length);
    return true;
  };
  const gets = words.map((word) => command(['get', word]));
  const together = Promise.resolve(pods.executeAll(gets, all, isBegun));
  expect(await run('get', 'missing')).toBe('(nil)');
  await Promise.all([single, together]);
  for (const answer of [one, all]) expect(String(Buffer.concat(answer.take()))).toMatch(error);
  expect([link.isUp, link.connects]).toEqual([true, 1]);
});

test('an answer of no sense ends the link, and its request has one error as all others of the link', async () => {
  const values = new ValueWriter(64);
  values.array(2);
  values.simple('half');
  values.u8(99);
  const bad = answers(values.view());
  listener.serve('pods', {
    open: (other) => {
      other.send(names(['get', 'set']));
      return {
        frame: () => void other.send(bad),
        drained: () => {},
        readEnd: () => {},
        closed: () => {},
      };
    },
  });
  const stranger = newLink(listener.port);
  await stranger.start();
  const executor = new RemoteExecutor(stranger, () => undefined);
  const replies = [new TextReply(), new TextReply()];
  await Promise.all([
    executor.execute(command(['get', 'a']), replies[0]!),
    executor.execute(command(['set', 'a', '1']), replies[1]!),
  ]);
  stranger.close();
  expect(replies.map(String)).toEqual([
    '(error) ERR the link to the pod that has this table ended',
    `(error) ${outcomeUnknown}`,
  ]);
});

function names(all: readonly string[]): Buffer {
  const writer = new WireWriter();
  writer.varint(all.length);
  for (const name of all) writer.string(name);
  return frameOf(RowFrame.names, writer.view());
}

/** The answer to the first request of lane 0. */
function answers(values: Buffer): Buffer {
  const writer = new WireWriter();
  writer.u8(Answer.values);
  writer.varint(0);
  writer.u8(0);
  writer.raw(values, 0, values.length);
  return frameOf(RowFrame.answers, writer.view());
}

function frameOf(type: number, payload: Buffer): Buffer {
  const writer = new WireWriter();
  writeFrame(writer, type, 0, payload);
  return Buffer.from(writer.view());
}

test('requests of many clients are answered, each with its own answer', async () => {
  const answers = await Promise.all(
    Array.from({ length: 2000 }, async (_, i) => {
      await run('set', `k${i}`, `v${i}`);
      return await run('get', `k${i}`);
    }),
  );
  expect(answers).toEqual(Array.from({ length: 2000 }, (_, i) => `v${i}`));
});

test('a transaction runs as one, with what the gateway answers in its places', async () => {
  expect(await runAll(['set a 1', 'incr a', 'lpop l', 'incr a'])).toBe('*4 OK 2 (nil) 3');
  const reply = new TextReply();
  const ping: Command = {
    ...command(['ping']),
    isLocal: true,
    transform: (_rows, _args, answer) => answer.simple('PONG'),
  };
  await pods.executeAll([command(['incr', 'a']), ping, command(['get', 'a'])], reply, (own) => {
    own.array(3);
    return true;
  });
  expect(String(reply)).toBe('*3 4 PONG 4');
});

test('a watched row that was touched has the transaction not run', async () => {
  await run('set', 'a', '1');
  const clean = watching();
  pods.observe(0, Buffer.from('a'), clean);
  expect(await runAll(['incr a'], clean)).toBe('*1 2');
  pods.unobserve(0, Buffer.from('a'), clean);

  const dirty = watching();
  pods.observe(0, Buffer.from('a'), dirty);
  await run('set', 'a', '7');
  expect(await runAll(['incr a'], dirty)).toBe('(nil)');
  expect(await run('get', 'a')).toBe('7');
  // The same without a command.
  expect(await runAll([], dirty)).toBe('(nil)');
});

test('a transaction that does not come to running has one answer', async () => {
  // Answer of the pod while too many commands wait for a table.
  const refuses = vi.spyOn(fixture.pod, 'executeAll');
  refuses.mockImplementation((_commands, reply) => reply.error('BUSY too many'));
  expect(await runAll(['set a 1', 'incr a'])).toBe('(error) BUSY too many');
  refuses.mockRestore();
  expect(await runAll(['set a 1', 'incr a'])).toBe('*2 OK 2');
});

test('an observed row tells when it is observed, and when it changes', async () => {
  let changes = 0;
  const observer = { rowChanged: () => void changes++ };
  pods.observe(0, Buffer.from('l'), observer);
  await run('get', 'other');
  expect(changes).toBe(1);
  // The change is told beside the answer and its work.
  const work = new RowWork();
  await pods.execute({ ...command(['rpush', 'l', 'x']), work }, new TextReply());
  await run('get', 'other');
  expect(changes).toBe(2);
  expect(work.lookups).toBe(1);
  pods.unobserve(0, Buffer.from('l'), observer);
  await run('rpush', 'l', 'x');
  expect(changes).toBe(2);
});

test('a table that is not there is refused', async () => {
  const reply = new TextReply();
  await pods.execute(command(['set', 'a', '1'], 5), reply);
  expect(String(reply)).toBe('(error) ERR the table has moved');
});

test('a link that dies leaves the outcome of writes unknown; then it connects again', async () => {
  let observed = 0;
  pods.observe(0, Buffer.from('k'), { rowChanged: () => void observed++ });
  await run('set', 'a', '1');
  proxy.onReply = () => 'cut';
  const write = run('incr', 'a');
  const read = run('get', 'a');
  expect(await write).toBe(`(error) ${outcomeUnknown}`);
  expect(await read).toMatch(/^\(error\) ERR the link/);
  expect(await run('get', 'a')).toMatch(/cannot be reached/);
  // Changes made meanwhile are unknown.
  expect(observed).toBe(2);
  proxy.onReply = undefined;
  proxy.open();
  await link.ready;
  expect(await run('get', 'a')).toBe('2');
  expect(observed).toBe(3);
});

test('scripts are run by the pod, by their text and by their digest', async () => {
  const source = "return redis.call('incrby', KEYS[1], ARGV[1])";
  const digest = createHash('sha1').update(source).digest('hex');
  expect(await run('evalsha', digest, '1', 'a', '5')).toMatch(/^\(error\) NOSCRIPT/);
  expect(await run('eval', source, '1', 'a', '5')).toBe('5');
  expect(await run('evalsha', digest, '1', 'a', '5')).toBe('10');
  const other = "return redis.call('get', KEYS[1])";
  const its = createHash('sha1').update(other).digest('hex');
  link.script(0, { source: other });
  expect(await run('evalsha', its, '1', 'a')).toBe('10');
  expect(await run('eval_ro', "return redis.call('set', 'a', 1)", '0')).toMatch(/read-only/);
  expect(await run('eval', "return redis.call('config', 'get', 'x')", '0')).toMatch(
    /^\(error\) ERR/,
  );
});

test('what scripts publish leaves with their answers', async () => {
  const source = "redis.call('publish', 'c', ARGV[1]) return redis.call('spublish', 'd', 'm')";
  expect(await run('eval', source, '0', 'one')).toBe('0');
  expect(published).toEqual(['0 c one', '0 d m sharded']);
  published = [];
  const reply = new TextReply();
  const scripts = ['two', 'three'].map((word) => command(['eval', source, '0', word]));
  await pods.executeAll(scripts, reply, (own) => {
    own.array(2);
    return true;
  });
  expect(String(reply)).toBe('*2 0 0');
  expect(published).toEqual(['0 c two', '0 d m sharded', '0 c three', '0 d m sharded']);
});

test('questions are answered', async () => {
  expect(await link.ask({ what: 'sizes' })).toEqual({ asked: { what: 'sizes' } });
});

test('who does not know the secret gets no link', async () => {
  const stranger = newLink(listener.port, Buffer.from('guessed, and wrongly'));
  void stranger.start();
  await expect.poll(() => warnings.some((text) => text.includes('does not know'))).toBe(false);
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(stranger.isUp).toBe(false);
  stranger.close();
  expect(await run('set', 'a', '1')).toBe('OK');
});

/** A peer that knows the secret, and then sends what it likes. */
async function send(payload: Buffer, type: number): Promise<void> {
  const socket = connect(listener.port, '127.0.0.1');
  const handshake = new ClientHandshake({
    identity: { ...identity, purpose: 'pods' },
    secret,
    nonce: Buffer.alloc(32, 1),
  });
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  socket.on('error', () => {});
  socket.write(handshake.hello);
  let isOpen = false;
  const reader = new FrameReader((kind, _stream, buf, start, end) => {
    if (isOpen) return;
    const step = handshake.received(kind, buf, start, end);
    if (step.send !== undefined) socket.write(step.send);
    if (step.peer === undefined) return;
    isOpen = true;
    const writer = new WireWriter();
    writeFrame(writer, type, 0, payload);
    socket.end(writer.view());
  });
  socket.on('data', (chunk) => reader.push(chunk));
  await closed;
}

test('whatever a peer sends, the pods go on', async () => {
  const anyPayload = fc.oneof(
    fc.uint8Array({ maxLength: 300 }),
    // Requests that look like some.
    fc
      .array(
        fc.tuple(
          fc.integer({ min: 1, max: 7 }),
          fc.nat(3),
          fc.nat(220),
          fc.nat(255),
          fc.uint8Array({ maxLength: 12 }),
        ),
        { maxLength: 6 },
      )
      .map((items) =>
        Uint8Array.from(items.flatMap(([kind, lane, a, b, rest]) => [kind, lane, a, b, ...rest])),
      ),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(17, 17, 17, 19, 20, 21, 99),
      anyPayload,
      async (type, bytes) => {
        await send(Buffer.from(bytes), type);
        expect(await run('set', 'alive', 'yes')).toBe('OK');
      },
    ),
    { numRuns: 150 },
  );
});

// Real traffic, damaged: bytes flipped, cut, doubled and swapped, split anywhere. The server may answer what
// it likes, but in RESP, and must neither die nor stop answering others.
//
//   POLYROW_FULL=1    ten minutes instead of a few seconds;  FUZZ_SEED=n repeats a run

import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Generator } from '../differential/generator.ts';
import { Polyrow } from '../support/polyrow.ts';
import { Random } from '../support/random.ts';
import { encodeAll, type RespClient } from '../support/resp-client.ts';
import { seedFrom } from '../support/seed.ts';

const full = process.env['POLYROW_FULL'] === '1';
const durationMs = full ? 600_000 : 8000;
const seed = seedFrom('FUZZ_SEED');

/** Commands that are meant to stop, stall or reconfigure a server have no place in a search for bugs. */
const notMeant = /shutdown|debug|sleep|monitor|pause|config|subscribe|reply|hello/i;

test.each(['memory', 'kv'])(
  '%s: mutated traffic harms nothing',
  { timeout: durationMs + 60_000 },
  async (model) => {
    const random = new Random(seed);
    const server = await Polyrow.start({
      flags: ['--redis.default-model', model, '--log.level', 'warn', '--memory.max-bytes', '1gb'],
    });
    try {
      const generator = new Generator(seed);
      const until = Date.now() + durationMs / 2;
      const witness = await server.client();
      let rounds = 0;
      while (Date.now() < until || rounds <= 10) {
        const traffic = Array.from({ length: 8 }, () => {
          const commands = Array.from(
            { length: 1 + random.below(30) },
            () => generator.next().words,
          );
          return mutate(encodeAll(commands), random);
        });
        await Promise.all(traffic.map((bytes) => send(server, bytes, random)));
        const where = `seed ${seed}, round ${rounds}`;
        expect(server.running, where).toBe(true);
        const answer = Promise.race([witness.text('PING'), sleep(10_000, 'no answer')]);
        expect(await answer, where).toBe('+PONG');
        rounds++;
      }
      // No leftovers, and the written data can be read back after a restart.
      await witness.command('SELECT', 0);
      await expect.poll(() => witness.text('INFO', 'clients')).toMatch(/connected_clients:1\D/);
      const { keys, expires } = await keyspace(witness);
      witness.close();
      expect(server.lifeOutput).not.toMatch(/unhandled|assert|TypeError|RangeError|Cannot read/i);
      await server.restart();
      const client = await server.client();
      const found = (await keyspace(client)).keys;
      expect(found).toBeLessThanOrEqual(keys);
      // The time of some may have come meanwhile.
      expect(found).toBeGreaterThanOrEqual(keys - expires);
      client.close();
      await server.stop();
    } finally {
      await server.remove();
    }
  },
);

/** Keys of database 0, and how many of them have a time to live. */
async function keyspace(client: RespClient): Promise<{ keys: number; expires: number }> {
  const info = await client.text('INFO', 'keyspace');
  const [, keys, expires] = /db0:keys=(\d+),expires=(\d+)/.exec(info) ?? [];
  return { keys: Number(keys ?? 0), expires: Number(expires ?? 0) };
}

/** Sends in pieces and reads what comes until it is over. What comes must be RESP: else this rejects. */
async function send(server: Polyrow, bytes: Buffer, random: Random): Promise<void> {
  const client = await server.client();
  client.socket.on('error', () => {});
  for (let at = 0; at < bytes.length && !client.closed; ) {
    const length = random.chance(0.5) ? bytes.length : 1 + random.below(40);
    client.send(bytes.subarray(at, at + length));
    at += length;
    if (random.chance(0.3)) await sleep(0);
  }
  await Promise.race([client.ended, sleep(5 + random.below(20))]);
  const broken = client.problem?.message;
  client.close();
  if (broken !== undefined && /not a (reply|length)|bulk without/.test(broken)) {
    throw new Error(`seed ${seed}: ${broken}, after\n${JSON.stringify(bytes.toString('latin1'))}`);
  }
}

function mutate(bytes: Buffer, random: Random): Buffer {
  let mutated = Buffer.from(bytes);
  for (let times = random.below(6); times > 0; times--) {
    const at = random.below(mutated.length + 1);
    const [head, tail] = [mutated.subarray(0, at), mutated.subarray(at)];
    const some = tail.subarray(random.below(20));
    switch (random.below(7)) {
      case 0:
        if (at < mutated.length) mutated[at] = random.below(256);
        break;
      case 1:
        mutated = Buffer.concat([head, some]);
        break;
      case 2:
        mutated = Buffer.concat([head, tail.subarray(0, 20), tail]);
        break;
      case 3:
        mutated = Buffer.concat([head, Buffer.from(random.pick(nasty)), tail]);
        break;
      case 4:
        mutated = Buffer.from(head);
        break;
      case 5:
        mutated = Buffer.concat([tail, head]);
        break;
      default: {
        // A count or a length becomes another one.
        const digit = mutated.findIndex((byte, i) => i >= at && byte >= 0x30 && byte <= 0x39);
        if (digit >= 0) mutated[digit] = 0x30 + random.below(10);
      }
    }
  }
  return notMeant.test(mutated.toString('latin1')) ? bytes : mutated;
}

const nasty = [
  ...['\r\n', '\n', '\r', '\0', '*', '$', '*0\r\n', '*-1\r\n', '$0\r\n\r\n', '*1\r\n', '+OK\r\n'],
  ...[
    '*1\r\n$0\r\n\r\n',
    '*2\r\n$4\r\nMULT',
    '*1000000000\r\n',
    '$1000000000\r\n',
    '"',
    "'",
    '\\x',
  ],
  ...[
    '*1\r\n$4\r\nEXEC\r\n',
    '*1\r\n$5\r\nMULTI\r\n',
    '*1\r\n$4\r\nPING\r\n',
    'PING\r\n',
    '%1\r\n',
  ],
  ...['*1\r\n$4\r\nQUIT\r\n', '*1\r\n$5\r\nRESET\r\n', '9999999999999999999', '-', '_\r\n'],
];

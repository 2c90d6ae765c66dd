// Keyspace notifications, beside redis-server's.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { redisInstalled } from '../commands/redis-server.ts';
import { Polyrow } from '../support/polyrow.ts';
import { RedisProcess } from '../support/redis-server.ts';
import { type RespClient, type Word } from '../support/resp-client.ts';
import { show } from '../support/resp-value.ts';
import { notifiedCommands } from './notified-commands.ts';

/** A client that hears everything, and one that acts. */
interface Heard {
  events: string[];
  listener: RespClient;
  actor: RespClient;
}

async function listen(connect: () => Promise<RespClient>, classes: string): Promise<Heard> {
  const listener = await connect();
  const actor = await connect();
  await actor.command('CONFIG', 'SET', 'notify-keyspace-events', classes);
  const events: string[] = [];
  await listener.command('PSUBSCRIBE', '*');
  listener.onReply = (reply) => {
    if ('items' in reply) events.push(reply.items.slice(2).map(show).join(' '));
  };
  return { events, listener, actor };
}

/** Commands that write tell of no keys that they did not find; `new` comes behind what became of the source. */
function comparable(line: string, events: string[]): string[] {
  if (/^(BITOP|PFMERGE|SORT)/.test(line)) return events.filter((one) => !one.includes('keymiss'));
  return /^(RENAME|MOVE)/.test(line) ? events.sort() : events;
}

let marks = 0;

/** Events of a line's commands. */
async function eventsOf({ events, actor }: Heard, line: string): Promise<string[]> {
  for (const command of line.split(' / ')) await actor.command(...command.split(' '));
  const mark = `"mark" "${++marks}"`;
  await actor.command('PUBLISH', 'mark', marks);
  for (let i = 0; i < 200 && !events.includes(mark); i++) await sleep(5);
  const all = events.splice(0);
  return all.filter((event) => !event.startsWith('"mark"'));
}

describe.each(['memory', 'kv'] as const)('notifications on the %s model', (model) => {
  let polyrow: Polyrow;
  beforeAll(async () => {
    polyrow = await Polyrow.start({ flags: ['--redis.default-model', model] });
  });
  afterAll(async () => {
    await polyrow.stop();
    await polyrow.remove();
  });

  test.skipIf(!redisInstalled)('are those of redis-server, command by command', async () => {
    const redis = await RedisProcess.start();
    try {
      const theirs = await listen(() => redis.client(), 'KEAmn');
      const ours = await listen(() => polyrow.client(), 'KEAmn');
      const differences: string[] = [];
      for (const line of notifiedCommands) {
        const expected = comparable(line, await eventsOf(theirs, line));
        const got = comparable(line, await eventsOf(ours, line));
        if (got.join('\n') === expected.join('\n')) continue;
        differences.push(`${line}\n  redis: ${expected.join(', ')}\n  ours:  ${got.join(', ')}`);
      }
      expect(differences.join('\n')).toBe('');
    } finally {
      await redis.remove();
    }
  });

  test('tell of rows whose time has come, read or not', async () => {
    const heard = await listen(() => polyrow.client(), 'Ex');
    for (const key of ['read', 'unread']) {
      await heard.actor.command('SET', key, 'v', 'PX', 20);
    }
    const all = new Set<string>();
    for (let i = 0; i < 100 && all.size < 2; i++) {
      await sleep(10);
      for (const event of await eventsOf(heard, 'GET read')) all.add(event);
    }
    expect([...all].sort()).toEqual([
      '"__keyevent@0__:expired" "read"',
      '"__keyevent@0__:expired" "unread"',
    ]);
  });

  test('are off without a class or without a kind of channel', async () => {
    for (const classes of ['', 'A', 'K', 'Kl', 'Eg']) {
      const heard = await listen(() => polyrow.client(), classes);
      expect(await eventsOf(heard, 'SET a 1')).toEqual([]);
    }
  });
});

test.each([
  ['KEA', 'AKE'],
  ['Ag$lshzxe', 'A'],
  ['xe', 'xe'],
  ['E$ n', undefined],
  ['KEn$m', '$KEmn'],
  ['KQ', undefined],
])('the setting %s is shown as %s', async (value: Word, shown) => {
  const polyrow = await Polyrow.start();
  try {
    const client = await polyrow.client();
    const reply = await client.text('CONFIG', 'SET', 'notify-keyspace-events', value);
    if (shown === undefined) expect(reply).toContain('Invalid event class character');
    else {
      expect(await client.text('CONFIG', 'GET', 'notify-keyspace-events')).toContain(`"${shown}"`);
    }
  } finally {
    await polyrow.stop();
    await polyrow.remove();
  }
});

// Attacks on the Redis plane by its protocol.

import type { Attack, Target } from './attack.ts';
import { globPattern, longGlob } from './payloads.ts';
import { command, httpBytes, type Word, Wire } from './wire.ts';

const mib = 1024 * 1024;
/** The default of redis.proto-max-bulk-len. */
const longest = 16 * mib;

/** Runs with a connection of its own. */
async function withClient<T>({ redisPort }: Target, run: (client: Wire) => Promise<T>): Promise<T> {
  const client = await Wire.connect(redisPort);
  try {
    return await run(client);
  } finally {
    client.close();
  }
}

/** One command, whose answer may be of any length: it is read up to a PING behind it, or the connection's end. */
async function once(target: Target, ...words: readonly Word[]): Promise<void> {
  await long(target, words);
}

/** The same for more words than a function takes arguments. */
async function long(target: Target, words: readonly Word[]): Promise<void> {
  await withClient(target, async (client) => {
    client.send(Buffer.concat([command(words), command(['PING', 'end-of-answer'])]));
    await readTo(client, 'end-of-answer\r\n');
  });
}

/** Lets an answer pass up to these bytes. */
async function readTo(client: Wire, end: string): Promise<void> {
  let tail = '';
  for (;;) {
    const bytes = await client.read((all) => all.length > 0);
    tail = (tail + bytes.toString('latin1', Math.max(0, bytes.length - 64))).slice(-64);
    if (client.closed || tail.endsWith(end)) return;
  }
}

async function fill(
  target: Target,
  key: string,
  verb: string,
  members: number,
  wordsOf: (n: number) => (string | number)[],
): Promise<void> {
  await withClient(target, async (client) => {
    for (let n = 0; n < members; ) {
      const words: (string | number)[] = [verb, key];
      for (let i = 0; i < 1000 && n < members; i++, n++) words.push(...wordsOf(n));
      await client.ask(...words);
    }
  });
}

/** A page that a browser loads makes it send this, with commands as the lines of its body. */
const browserPost = httpBytes({
  method: 'POST',
  path: '/',
  headers: { Host: 'attacker.example', Origin: 'http://attacker.example' },
  body: 'SET stolen 1\r\n'.repeat(50),
});

const manyTimes = 10_000_000;

export const redisAttacks: readonly Attack[] = [
  {
    name: 'keys-glob',
    what: 'KEYS with a star and 30,000 letters on a name of 60,000 bytes',
    prepare: (target) => once(target, 'SET', 'a'.repeat(60_000), 1),
    run: (target) => once(target, 'KEYS', longGlob(30_000)),
  },
  {
    name: 'keys-stars',
    what: 'KEYS with 2,000 stars on 100 names of 60,000 bytes',
    prepare: async (target) => {
      for (let n = 0; n < 100; n++) await once(target, 'SET', 'a'.repeat(60_000) + n, 1);
    },
    run: (target) => once(target, 'KEYS', globPattern(2000)),
  },
  {
    name: 'scan-glob',
    what: 'SCAN with a pattern of 30,000 letters over names of 60,000 bytes',
    prepare: async (target) => {
      for (let n = 0; n < 4; n++) await once(target, 'SET', 'a'.repeat(60_000) + n, 1);
    },
    run: (target) => once(target, 'SCAN', 0, 'MATCH', longGlob(30_000), 'COUNT', 100_000),
  },
  {
    name: 'publish-patterns',
    what: '50 patterns of 30,000 letters, and a message to a channel of 60,000',
    run: (target) =>
      withClient(target, async (subscriber) => {
        const patterns = Array.from({ length: 50 }, (_, n) => longGlob(30_000 + n));
        subscriber.send(command(['PSUBSCRIBE', ...patterns]));
        await subscriber.line();
        await once(target, 'PUBLISH', 'a'.repeat(60_000), 'x');
      }),
  },
  {
    name: 'publish-fan-out',
    what: 'messages of 1 MB to 400 subscribers that do not read',
    run: async (target) => {
      const subscribers = await Promise.all(
        Array.from({ length: 400 }, () => Wire.connect(target.redisPort)),
      );
      for (const subscriber of subscribers) {
        subscriber.send(command(['SUBSCRIBE', 'c']));
        await subscriber.line();
        subscriber.pause();
      }
      const message = Buffer.alloc(mib, 'm');
      for (let n = 0; n < 10; n++) await once(target, 'PUBLISH', 'c', message);
      for (const subscriber of subscribers) subscriber.close();
    },
  },
  {
    name: 'browser-post',
    what: 'a POST of a web page with commands in its body',
    run: (target) =>
      withClient(target, async (client) => {
        client.send(browserPost);
        await client.read(() => false).catch(() => {});
      }),
    verdict: (target) =>
      withClient(target, async (client) =>
        (await client.ask('EXISTS', 'stolen')) === ':0' ? undefined : 'the commands were run',
      ),
  },
  {
    name: 'random-members',
    what: 'SRANDMEMBER, HRANDFIELD and ZRANDMEMBER of 10,000,000 each',
    prepare: async (target) => {
      await fill(target, 's', 'SADD', 1000, (n) => [`member-${n}`]);
      await fill(target, 'h', 'HSET', 1000, (n) => [`field-${n}`, 'value']);
      await fill(target, 'z', 'ZADD', 1000, (n) => [n, `member-${n}`]);
    },
    run: async (target) => {
      await once(target, 'SRANDMEMBER', 's', -manyTimes);
      await once(target, 'HRANDFIELD', 'h', -manyTimes, 'WITHVALUES');
      await once(target, 'ZRANDMEMBER', 'z', -manyTimes, 'WITHSCORES');
    },
  },
  {
    name: 'mget-large',
    what: 'MGET of one value of 4 MB 150 times',
    prepare: (target) => once(target, 'SET', 'big', Buffer.alloc(4 * mib, 'v')),
    run: (target) => once(target, 'MGET', ...Array.from({ length: 150 }, () => 'big')),
  },
  {
    name: 'lrange-large',
    what: 'LRANGE, SMEMBERS and HGETALL of a million elements by a client that does not read',
    prepare: async (target) => {
      await fill(target, 'l', 'RPUSH', 1_000_000, (n) => [`element-${n}`]);
      await fill(target, 's', 'SADD', 1_000_000, (n) => [`member-${n}`]);
      await fill(target, 'h', 'HSET', 1_000_000, (n) => [`field-${n}`, n]);
    },
    run: async (target) => {
      await once(target, 'LRANGE', 'l', 0, -1);
      await once(target, 'SMEMBERS', 's');
      await once(target, 'HGETALL', 'h');
    },
  },
  {
    name: 'lcs',
    what: 'LCS of two values of 11 kB, and of 2 MB',
    prepare: async (target) => {
      await once(target, 'SET', 'a', 'ab'.repeat(5500));
      await once(target, 'SET', 'b', 'ba'.repeat(5500));
      await once(target, 'SET', 'c', 'ab'.repeat(mib));
      await once(target, 'SET', 'd', 'ba'.repeat(mib));
    },
    run: async (target) => {
      await once(target, 'LCS', 'a', 'b', 'IDX');
      await once(target, 'LCS', 'c', 'd', 'IDX');
    },
  },
  {
    name: 'setrange',
    what: 'SETRANGE and SETBIT at 512 MB and at the longest that there may be, and reading it back',
    run: async (target) => {
      await once(target, 'SETRANGE', 'far', 512 * mib - 1, 'x');
      await once(target, 'SETBIT', 'far', 4_294_967_295, 1);
      await once(target, 'SETRANGE', 'far', longest - 1, 'x');
      await once(target, 'DEL', 'far');
      await once(target, 'SETBIT', 'far', 8 * longest - 1, 1);
      await once(target, 'BITCOUNT', 'far');
      await once(target, 'GET', 'far');
      await once(target, 'DEL', 'far');
    },
  },
  {
    name: 'set-algebra',
    what: 'SINTER, SUNION and ZUNION of sets of 300,000',
    prepare: async (target) => {
      for (const key of ['s1', 's2', 's3']) {
        await fill(target, key, 'SADD', 300_000, (n) => [`member-${n}`]);
      }
      await fill(target, 'z1', 'ZADD', 300_000, (n) => [n, `member-${n}`]);
    },
    run: async (target) => {
      await once(target, 'SINTER', 's1', 's2', 's3');
      await once(target, 'SUNIONSTORE', 'out', 's1', 's2', 's3');
      await once(target, 'ZUNIONSTORE', 'zout', 2, 'z1', 's1');
      await once(target, 'SDIFF', 's1', 'none');
    },
  },
  {
    name: 'sort-large',
    what: 'SORT ALPHA of 500,000 elements, and LREM and LPOS over them',
    prepare: (target) =>
      fill(target, 'l', 'RPUSH', 500_000, (n) => [`${(n * 7919) % 500_000}-element`]),
    run: async (target) => {
      await once(target, 'SORT', 'l', 'ALPHA', 'LIMIT', 0, 10);
      await once(target, 'LPOS', 'l', 'none', 'RANK', -1);
      await once(target, 'LREM', 'l', 0, 'none');
      await once(target, 'LINSERT', 'l', 'BEFORE', 'none', 'x');
    },
  },
  {
    name: 'many-arguments',
    what: 'commands of 1,000,000 words: DEL, EXISTS, SADD, ZADD, HSET',
    run: async (target) => {
      const names = Array.from({ length: 500_000 }, (_, n) => `k${n}`);
      const pairs = names.flatMap((name, n) => [n, name]);
      await long(target, ['EXISTS', ...names]);
      await long(target, ['SADD', 'wide-set', ...names]);
      await long(target, ['ZADD', 'wide-ranked', ...pairs]);
      await long(target, ['HSET', 'wide-hash', ...pairs]);
      await long(target, ['MSET', ...pairs]);
      await long(target, ['DEL', 'wide-set', 'wide-ranked', 'wide-hash', ...names]);
      await long(target, ['DEL', ...names.map((_, n) => n)]);
    },
  },
  {
    name: 'info-prototype',
    what: 'INFO constructor, INFO __proto__, CONFIG GET __proto__',
    run: async (target) => {
      for (const name of ['constructor', '__proto__', 'toString', 'hasOwnProperty']) {
        await once(target, 'INFO', name);
        await once(target, 'CONFIG', 'GET', name);
        await once(target, 'COMMAND', 'INFO', name);
        await once(target, 'CLIENT', name);
      }
    },
    verdict: (target) =>
      withClient(target, async (client) => {
        const answer = await client.ask('INFO', 'constructor');
        return answer.startsWith('-') ? answer : undefined;
      }),
  },
  {
    name: 'watch-many',
    what: 'WATCH of one key 200,000 times, and of 200,000 keys',
    run: (target) =>
      withClient(target, async (client) => {
        const all = Array.from({ length: 200_000 }, () => 'k');
        client.send(command(['WATCH', ...all]));
        await client.line();
        client.send(command(['WATCH', ...all.map((key, n) => key + n)]));
        await client.line();
        await client.ask('UNWATCH');
      }),
  },
  {
    name: 'multi-queue',
    what: 'a transaction of 400 commands of 1 MB by each of 4 clients',
    run: async (target) => {
      const value = Buffer.alloc(mib, 'v');
      await Promise.all(
        Array.from({ length: 4 }, () =>
          withClient(target, async (client) => {
            await client.ask('MULTI');
            for (let n = 0; n < 400 && !client.closed; n++) await client.ask('SET', `q${n}`, value);
          }),
        ),
      );
    },
  },
  {
    name: 'subscribe-many',
    what: '400,000 channels of 1 kB each',
    run: (target) =>
      withClient(target, async (client) => {
        for (let n = 0; n < 400 && !client.closed; n++) {
          const names = Array.from({ length: 1000 }, (_, i) => `${n}-${i}`.padEnd(1000, 'c'));
          client.send(command(['SUBSCRIBE', ...names]));
          await client.line();
        }
      }),
  },
  {
    name: 'half-requests',
    what: '20 clients that each send all but the end of a value of 16 MB, and of a command of three',
    run: async (target) => {
      await once(target, 'SET', 'k', Buffer.alloc(longest + 1));
      const size = longest;
      const piece = Buffer.alloc(mib, 'v');
      const clients = await Promise.all(
        Array.from({ length: 20 }, () => Wire.connect(target.redisPort)),
      );
      const head = `$${size}\r\n`;
      clients.forEach((client, n) => {
        if (n < 10) client.send(`*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${head}`);
        else client.send(`*5\r\n$4\r\nMSET\r\n${`$1\r\nk\r\n${head}`}`);
      });
      for (let sent = 0; sent < 3 * size - mib; sent += mib) {
        if (sent === size) clients.splice(0, 10).forEach((client) => client.close());
        if (sent > 0 && sent % size === 0) {
          for (const client of clients) client.send(`\r\n$1\r\nk\r\n${head}`);
        }
        for (const client of clients) client.send(piece);
        await new Promise((resolve) => setTimeout(resolve, 10));
        if (clients.every((client) => client.closed)) break;
      }
      for (const client of clients) client.close();
    },
  },
  {
    name: 'deaf-readers',
    what: '100 clients that ask for 100 values of 1 MB each and read nothing',
    prepare: (target) => once(target, 'SET', 'large', Buffer.alloc(mib, 'v')),
    run: async (target) => {
      const clients = await Promise.all(
        Array.from({ length: 100 }, () => Wire.connect(target.redisPort)),
      );
      const gets = Buffer.concat(Array.from({ length: 100 }, () => command(['GET', 'large'])));
      for (const client of clients) {
        client.pause();
        client.send(gets);
      }
      await new Promise((resolve) => setTimeout(resolve, 2000));
      for (const client of clients) client.close();
    },
  },
  {
    name: 'silent-connections',
    what: 'connections that never log in, as many as redis.maxclients has room for',
    flags: ['--redis.maxclients', '200', '--redis.password', 'secret'],
    password: 'secret',
    run: async (target) => {
      const clients = await Promise.all(
        Array.from({ length: 400 }, () => Wire.connect(target.redisPort)),
      );
      await new Promise((resolve) => setTimeout(resolve, 1000));
      for (const client of clients) client.close();
    },
    verdict: async (target) => {
      const silent = await Promise.all(
        Array.from({ length: 400 }, () => Wire.connect(target.redisPort)),
      );
      try {
        // Longer than any deadline of a login.
        await new Promise((resolve) => setTimeout(resolve, 15_000));
        return await withClient(target, async (client) => {
          const answer = await client.ask('AUTH', 'secret');
          return answer === '+OK' ? undefined : `a client that logs in was told ${answer}`;
        });
      } finally {
        for (const client of silent) client.close();
      }
    },
  },
  {
    name: 'acl-patterns',
    what: 'a user with 20,000 key patterns, and a command of 5,000 keys by it',
    run: async (target) => {
      const patterns = Array.from({ length: 20_000 }, (_, n) => `~*${n}*x*y*z`);
      await long(target, ['ACL', 'SETUSER', 'wide', 'on', 'nopass', '+@all', ...patterns]);
      await withClient(target, async (client) => {
        await client.ask('AUTH', 'wide', 'any');
        const names = Array.from({ length: 5000 }, (_, n) => `none-of-them-${n}`);
        client.send(command(['EXISTS', ...names]));
        await client.line();
      });
      await once(target, 'ACL', 'DELUSER', 'wide');
    },
  },
  {
    name: 'repeated-keys',
    what: 'SUNION, ZUNION and BITOP of one large key 2,000 times, and PFCOUNT-like walks',
    prepare: async (target) => {
      await fill(target, 's', 'SADD', 200_000, (n) => [`member-${n}`]);
      await once(target, 'SET', 'big', Buffer.alloc(4 * mib, 'v'));
    },
    run: async (target) => {
      const sets = Array.from({ length: 2000 }, () => 's');
      await once(target, 'SUNIONSTORE', 'out', ...sets);
      await once(target, 'SINTERCARD', sets.length, ...sets);
      await once(target, 'ZUNIONSTORE', 'zout', sets.length, ...sets);
      await once(target, 'BITOP', 'XOR', 'bits', ...sets.map(() => 'big'));
    },
  },
  {
    name: 'repeated-names',
    what: 'COMMAND DOCS, COMMAND INFO and CONFIG GET of one name 200,000 times',
    run: async (target) => {
      const names = Array.from({ length: 200_000 }, () => 'client');
      await long(target, ['COMMAND', 'DOCS', ...names]);
      await long(target, ['COMMAND', 'INFO', ...names]);
      await long(target, ['CONFIG', 'GET', ...names.map(() => '*')]);
      await long(target, ['CLIENT', 'LIST', 'ID', ...names.map(() => 1)]);
      await long(target, ['INFO', ...names.map(() => 'all')]);
    },
  },
  {
    name: 'long-words',
    what: 'a command, a subcommand, a section and an option of 16 MB each',
    run: async (target) => {
      const word = Buffer.alloc(longest, 'x');
      await once(target, word);
      await once(target, 'CLIENT', word);
      await once(target, 'INFO', word);
      await once(target, 'SET', 'k', 'v', word);
      await once(target, 'INCRBYFLOAT', 'f', word);
      await once(target, 'CONFIG', 'GET', word);
      await once(target, 'AUTH', word);
      await once(target, 'PUBLISH', word, word);
    },
  },
  {
    name: 'monitor-large',
    what: 'a client in MONITOR while values of 16 MB are written',
    run: (target) =>
      withClient(target, async (monitor) => {
        await monitor.ask('MONITOR');
        const value = Buffer.alloc(longest, 0);
        for (let n = 0; n < 3; n++) await once(target, 'SET', 'k', value);
      }),
  },
  {
    name: 'large-values',
    what: 'SET, GET, APPEND, COPY, GETRANGE and BITCOUNT of a value of 16 MB, and one of 100 MB',
    // Stored data counts: the value, its copy, and the values they replace.
    growthBytes: 600 * mib,
    run: async (target) => {
      await once(target, 'SET', 'big', Buffer.alloc(100 * mib, 'v'));
      const value = Buffer.alloc(longest, 'v');
      await once(target, 'SET', 'big', value.subarray(1));
      await once(target, 'GET', 'big');
      await once(target, 'APPEND', 'big', 'x');
      await once(target, 'COPY', 'big', 'copy', 'REPLACE');
      await once(target, 'GETRANGE', 'big', 0, longest / 2);
      await once(target, 'BITCOUNT', 'big');
      await once(target, 'BITPOS', 'big', 0);
      await once(target, 'DEL', 'big', 'copy');
    },
  },
  {
    name: 'block-many',
    what: 'BLPOP of 200,000 keys by 10 clients, of 1,000 by 90, and 1,900 clients that wait for one key',
    run: async (target) => {
      const names = Array.from({ length: 200_000 }, (_, n) => `b${n}`);
      const clients = await Promise.all(
        Array.from({ length: 2000 }, () => Wire.connect(target.redisPort)),
      );
      clients.forEach((client, n) => {
        const keys = n < 10 ? names : n < 100 ? names.slice(0, 1000) : ['b1'];
        client.send(command(['BLPOP', ...keys, 0]));
      });
      await new Promise((resolve) => setTimeout(resolve, 500));
      for (let n = 0; n < 100; n++) await once(target, 'RPUSH', 'b1', n);
      for (const client of clients) client.close();
    },
  },
  {
    name: 'many-keys',
    what: '2,000,000 small keys, all of which expire at once, and FLUSHALL',
    // The keys themselves, and the memory of an index that grows.
    growthBytes: 1000 * mib,
    run: async (target) => {
      await withClient(target, async (client) => {
        const commands: Buffer[] = [];
        for (let n = 0; n < 2_000_000; n++) {
          commands.push(Buffer.from(`SET k${n} v PX 60000\r\n`));
          if (commands.length < 10_000) continue;
          client.send(Buffer.concat(commands.splice(0)));
          await client.skip(10_000 * 5);
        }
      });
      await once(target, 'FLUSHALL');
    },
  },
  {
    name: 'channels-listed',
    what: 'PUBSUB CHANNELS with a long pattern over 50,000 channels',
    run: (target) =>
      withClient(target, async (client) => {
        const names = Array.from({ length: 50_000 }, (_, n) => 'a'.repeat(500) + n);
        client.send(command(['SUBSCRIBE', ...names]));
        await client.line();
        await once(target, 'PUBSUB', 'CHANNELS', globPattern(200));
        await once(target, 'PUBSUB', 'NUMSUB', ...names.slice(0, 5000));
      }),
  },
];

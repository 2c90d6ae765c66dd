// Two ends of a link over real sockets, plain and encrypted, and strangers at the port.

import { execFileSync } from 'node:child_process';
import { connect } from 'node:net';
import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import { TcpProxy } from '../test/metadata/tcp-proxy.ts';
import { HelloError } from '../universal-row/protocol/hello.ts';
import { writeFrame } from '../universal-row/protocol/frames.ts';
import { WireError, WireWriter } from '../universal-row/protocol/wire.ts';
import type { ClusterLink, LinkContext, LinkHandler, LinkService } from './cluster-link.ts';
import { ClusterListener } from './cluster-listener.ts';
import { dialLink } from './dial.ts';
import { isLoopback } from './encryption.ts';

const host = '127.0.0.1';
const secret = Buffer.from('a secret of this test only');
const context: LinkContext = {
  identity: { cluster: 'c', node: '1', incarnation: 1, level: 1 },
  secret,
};
const frameType = 80;

const opened: { close(): unknown }[] = [];
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close();
});

/** One end: what it was told. */
class End implements LinkHandler {
  link!: ClusterLink;
  heard: Buffer[] = [];
  end: string | undefined;
  answers = false;
  drains = 0;

  frame(type: number, _stream: number, buf: Buffer, start: number, end: number): void {
    if (type !== frameType) throw new WireError('not a frame of this test');
    const bytes = Buffer.from(buf.subarray(start, end));
    this.heard.push(bytes);
    if (this.answers) this.say(bytes);
  }
  drained(): void {
    this.drains++;
  }
  readEnd(): void {}
  closed(error: Error | undefined): void {
    this.end = error?.message ?? 'closed';
  }
  say(payload: Buffer, type = frameType): void {
    const writer = new WireWriter(payload.length + 64);
    writeFrame(writer, type, 0, payload);
    this.link.send(writer.view());
  }
}

interface Listening {
  listener: ClusterListener;
  ends: End[];
  reports: string[];
}

async function listen(
  options: Partial<LinkContext> = {},
  service: Partial<LinkService> = {},
): Promise<Listening> {
  const reports: string[] = [];
  const ends: End[] = [];
  const listener = new ClusterListener({ ...context, ...options }, (_level, message) => {
    reports.push(message);
  });
  listener.serve('test', {
    open: (link) => {
      const end = new End();
      end.link = link;
      end.answers = true;
      ends.push(end);
      return end;
    },
    ...service,
  });
  await listener.listen(host, 0);
  opened.push(listener);
  return { listener, ends, reports };
}

/** The end of the link that was made, or why none was. */
function dial(
  port: number,
  options: Partial<LinkContext> = {},
  target: { purpose?: string; node?: string; host?: string } = {},
): Promise<End | string> {
  return new Promise((resolve) => {
    const end = new End();
    const dialled = dialLink(
      { ...context, ...options },
      { host, port, purpose: 'test', ...target },
      {
        open: (link) => {
          end.link = link;
          resolve(end);
          return end;
        },
        failed: ({ message }) => resolve(message),
      },
    );
    opened.push(dialled);
  });
}

async function linked(port: number, options: Partial<LinkContext> = {}): Promise<End> {
  const end = await dial(port, options);
  if (typeof end === 'string') throw new Error(end);
  return end;
}

const kinds = ['remote', 'always'] as const;

describe.each(kinds)('encryption: %s', (encryption) => {
  test('frames of every size arrive whole and in order, both ways', async () => {
    const { listener, ends } = await listen({ encryption });
    const end = await linked(listener.port, { encryption });
    const sizes = [0, 1, 1000, 70_000, 1 << 20, 15 << 20, 3];
    const sent = sizes.map((size) => Buffer.alloc(size, `${size} `));
    for (const bytes of sent) end.say(bytes);
    await expect.poll(() => end.heard.length).toBe(sent.length);
    expect(end.heard.every((bytes, i) => bytes.equals(sent[i]!))).toBe(true);
    expect(end.link.peer).toMatchObject({ cluster: 'c', node: '1', purpose: 'test', version: 1 });
    expect(ends[0]!.link.peer.purpose).toBe('test');
    expect(listener.links).toBe(1);
    end.link.close();
    await expect.poll(() => ends[0]!.end).toBe('closed');
    expect(listener.links).toBe(0);
  });

  test('bytes that the peer does not read are counted until they have left', async () => {
    const { listener, ends } = await listen({ encryption });
    const end = await linked(listener.port, { encryption });
    end.say(Buffer.from('x'));
    await expect.poll(() => end.heard.length).toBe(1);
    ends[0]!.answers = false;
    ends[0]!.link.pause(true);
    const payload = Buffer.alloc(1 << 20, 'y');
    for (let i = 0; i < 15; i++) end.say(payload);
    expect(end.link.unsentBytes).toBeGreaterThan(payload.length);
    const before = end.drains;
    ends[0]!.link.pause(false);
    await expect.poll(() => ends[0]!.heard.length).toBe(16);
    await expect.poll(() => end.drains).toBeGreaterThan(before);
    expect(end.link.unsentBytes).toBe(0);
  });

  test('what is said can be read on the way only if it is plain', async () => {
    const { listener } = await listen({ encryption });
    const proxy = await TcpProxy.start(listener.port);
    opened.push(proxy);
    let seen = '';
    proxy.onRequest = (chunk) => void (seen += chunk.toString('latin1'));
    const end = await linked(proxy.port, { encryption });
    end.say(Buffer.from('what is said'));
    await expect.poll(() => end.heard.length).toBe(1);
    expect(seen.includes('what is said')).toBe(encryption === 'remote');
  });

  test('who does not know the secret gets no link', async () => {
    const { listener, ends, reports } = await listen({ encryption });
    const other = Buffer.from('another secret altogether');
    expect(await dial(listener.port, { encryption, secret: other })).toMatch(/secret/);
    await expect.poll(() => reports.join()).toMatch(/refused: .*secret/);
    expect(ends).toEqual([]);
    expect(listener.refused).toBe(1);
  });

  test('a peer that is cut off without a word is noticed by both ends', async () => {
    const limits = { encryption, silenceMs: 400 };
    const { listener, ends, reports } = await listen(limits);
    const proxy = await TcpProxy.start(listener.port);
    opened.push(proxy);
    const end = await linked(proxy.port, limits);
    // Longer than a silence: pings are enough.
    await new Promise((resolve) => setTimeout(resolve, 1000));
    end.say(Buffer.from('still here'));
    await expect.poll(() => end.heard.length).toBe(1);
    proxy.stall();
    await expect.poll(() => end.end).toBe('the peer is silent');
    await expect.poll(() => ends[0]!.end).toBe('the peer is silent');
    expect(reports.join()).toMatch(/the link of node 1 for test ended: the peer is silent/);
  });

  test('a suspected peer is given up before its time, unless it is heard', async () => {
    const limits = { encryption, silenceMs: 60_000 };
    const { listener } = await listen(limits);
    const proxy = await TcpProxy.start(listener.port);
    opened.push(proxy);
    const end = await linked(proxy.port, limits);
    const begin = performance.now();
    while (performance.now() - begin < 1000) {
      end.link.suspect();
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    end.say(Buffer.from('still here'));
    await expect.poll(() => end.heard.length).toBe(1);
    proxy.stall();
    end.link.suspect();
    expect(end.end).toBeUndefined();
    await expect
      .poll(() => {
        end.link.suspect();
        return end.end;
      })
      .toBe('the peer is silent, and others took over from it');
  });

  test('a peer that is not read for a while is not silent', async () => {
    const limits = { encryption, silenceMs: 400 };
    const { listener } = await listen(limits);
    const end = await linked(listener.port, limits);
    end.link.pause(true);
    end.say(Buffer.from('a question'));
    await new Promise((resolve) => setTimeout(resolve, 1000));
    expect(end.heard).toEqual([]);
    end.link.pause(false);
    await expect.poll(() => end.heard.length).toBe(1);
  });

  test('frames that make no sense end the link', async () => {
    const { listener, ends } = await listen({ encryption });
    const end = await linked(listener.port, { encryption });
    end.say(Buffer.from('x'), 81);
    await expect.poll(() => end.end).toBe('closed');
    expect(ends[0]!.end).toBe('not a frame of this test');
  });
});

describe('a link is refused', () => {
  const otherCluster = { ...context.identity, cluster: 'd' };
  test.each<[string, Partial<LinkContext>, Parameters<typeof dial>[2], RegExp]>([
    ['of another cluster', { identity: otherCluster }, {}, /of another cluster/],
    ['for an unknown purpose', {}, { purpose: 'gold' }, /links for gold are not served/],
    ['to somebody else', {}, { node: '2' }, /that is node 1, not 2/],
    ['to a name that there is not', {}, { host: 'nowhere.invalid' }, /nowhere/],
  ])('%s', async (_what, options, target, why) => {
    const { listener, ends } = await listen();
    expect(await dial(listener.port, options, target)).toMatch(why);
    await expect.poll(() => ends.every(({ end }) => end !== undefined)).toBe(true);
  });

  test('by what it is for', async () => {
    const { listener } = await listen(
      {},
      {
        admit: ({ node }) => {
          throw new HelloError(`node ${node} is not a member`);
        },
      },
    );
    expect(await dial(listener.port)).toBe('refused by the peer: node 1 is not a member');
  });

  test('in plain text, where it has to be encrypted', async () => {
    const { listener, reports } = await listen({ encryption: 'always' });
    expect(await dial(listener.port)).toMatch(/refused by the peer: .* have to be encrypted/);
    expect(reports.join()).toMatch(/refused: the link is not encrypted/);
  });

  test('to a port where nobody listens', async () => {
    const { listener } = await listen();
    const { port } = listener;
    await listener.close();
    expect(await dial(port)).toMatch(/ECONNREFUSED/);
  });

  test('to one that does not answer', async () => {
    const { listener } = await listen();
    const proxy = await TcpProxy.start(listener.port);
    opened.push(proxy);
    proxy.stall();
    for (const encryption of kinds) {
      expect(await dial(proxy.port, { encryption, helloMs: 200 })).toBe('no answer in time');
    }
  });
});

test('an encrypted link is taken where a plain one would do', async () => {
  const { listener } = await listen();
  const end = await linked(listener.port, { encryption: 'always' });
  end.say(Buffer.from('x'));
  await expect.poll(() => end.heard.length).toBe(1);
});

test('a short secret is refused', () => {
  expect(() => new ClusterListener({ ...context, secret: Buffer.alloc(15) }, () => {})).toThrow(
    /at least 16/,
  );
});

test.each([
  ['127.0.0.1', true],
  ['127.8.9.10', true],
  ['::1', true],
  ['::ffff:127.0.0.1', true],
  ['10.0.0.1', false],
  ['128.0.0.1', false],
  ['::ffff:10.0.0.1', false],
  ['fe80::1', false],
  ['0.0.0.0', false],
  [undefined, false],
])('%s is loopback: %s', (address, expected) => {
  expect(isLoopback(address)).toBe(expected);
});

describe('strangers', () => {
  test('whatever they send, they are refused, and the links of others go on', async () => {
    const { listener } = await listen();
    const end = await linked(listener.port);
    const send = (bytes: Uint8Array): Promise<void> =>
      new Promise((resolve) => {
        const socket = connect(listener.port, host);
        let kept = 0;
        socket.on('data', (chunk) => void (kept += chunk.length));
        socket.on('error', () => undefined);
        socket.on('close', () => {
          expect(kept).toBeLessThan(1024);
          resolve();
        });
        socket.end(bytes);
      });
    const beginning = (...first: number[]) =>
      fc.uint8Array({ minLength: 16, maxLength: 512 }).map((bytes) => {
        bytes.set(first);
        return bytes;
      });
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          fc.uint8Array({ maxLength: 4096 }),
          // A header that announces much; one of a hello; two of TLS.
          beginning(0xff, 0xff, 0xff, 0x00, 1, 0, 0, 0),
          beginning(0x30, 0, 0, 0, 1, 0, 0, 0),
          beginning(0x16, 3, 1, 0x01, 0x00, 1),
          beginning(0x16, 3, 3, 0x00, 0x20, 1, 0, 0, 0x1c),
        ),
        send,
      ),
      { numRuns: 300 },
    );
    end.say(Buffer.from('still here'));
    await expect.poll(() => end.heard.length).toBe(1);
    await expect.poll(() => listener.links).toBe(1);
  });

  test('that say nothing are few at a time, and not for long', async () => {
    const { listener } = await listen({ helloMs: 1000 });
    let closed = 0;
    for (let i = 0; i < 100; i++) {
      const socket = connect(listener.port, host);
      socket.on('error', () => undefined);
      socket.on('close', () => closed++);
      // Half of them begin with what may become TLS.
      socket.write(i % 2 === 0 ? Buffer.from([0x16, 0x03, 0x01]) : Buffer.from([1]));
    }
    await expect.poll(() => closed).toBeGreaterThanOrEqual(36);
    await expect.poll(() => closed).toBe(100);
    await linked(listener.port);
  });

  test('that reset their connections before these are accepted do no harm', async () => {
    const helloMs = 200;
    const { listener } = await listen({ helloMs });
    const program = `
      const { connect } = require('node:net');
      for (let i = 0; i < 5; i++) {
        const socket = connect(${listener.port}, '${host}', () => socket.resetAndDestroy());
      }`;
    // This process accepts nothing meanwhile.
    execFileSync(process.execPath, ['-e', program]);
    await expect.poll(() => listener.refused).toBe(5);
    await new Promise((resolve) => setTimeout(resolve, 2 * helloMs));
    await linked(listener.port);
  });

  test.each(kinds)('that hold all places have peers link all the same: %s', async (encryption) => {
    const { listener, ends } = await listen({ encryption, helloMs: 60_000 });
    const sockets = Array.from({ length: 80 }, () => connect(listener.port, host));
    let open = 0;
    for (const socket of sockets) {
      socket.on('error', () => undefined);
      socket.on('connect', () => open++);
      socket.on('close', () => open--);
    }
    await expect.poll(() => open).toBe(64);
    for (let i = 0; i < 3; i++) (await linked(listener.port, { encryption })).say(Buffer.from('x'));
    await expect.poll(() => ends.map(({ heard }) => heard.length)).toEqual([1, 1, 1]);
    expect(listener.links).toBe(3);
    await expect.poll(() => open).toBeLessThan(64);
    for (const socket of sockets) socket.destroy();
  });
});

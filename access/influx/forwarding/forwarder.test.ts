// Nodes that forward to one another by links on loopback, each with a store of its own, and clients of the first.

import { randomBytes } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { afterEach, expect, test } from 'vitest';
import type { ClusterLink, LinkContext } from '../../../cluster-links/cluster-link.ts';
import { ClusterListener } from '../../../cluster-links/cluster-listener.ts';
import { dialLink } from '../../../cluster-links/dial.ts';
import { NotLeaderError, OutcomeUnknownError } from '../../../contracts/series-store.ts';
import { MemorySeriesStore } from '../http/testing/memory-series-store.ts';
import { PeopleAuthenticator } from '../http/testing/people-authenticator.ts';
import { InfluxServer } from '../http/server.ts';
import { Forwarder, type LeadingNode } from './forwarder.ts';
import { httpPurpose, LinkStream } from './link-stream.ts';

const secret = randomBytes(32);

class Node {
  readonly number: number;
  readonly store = new MemorySeriesStore();
  leader: LeadingNode | 'here' | undefined;
  listener!: ClusterListener;
  server!: InfluxServer;
  forwarder!: Forwarder;
  port = 0;
  readonly streams = new Set<LinkStream>();
  /** To other nodes. */
  readonly links: ClusterLink[] = [];
  beforeForwarding = (): void => {};
  /** Where it leads. */
  confirmed = (): Promise<number> => Promise.resolve(1);
  notThere = (): void => {};
  requests = 0;

  constructor(number: number) {
    this.number = number;
  }

  async start(): Promise<void> {
    const { number, store } = this;
    const identity = { cluster: 'test', node: String(number), incarnation: 1, level: 1 };
    const context: LinkContext = { identity, secret };
    this.listener = new ClusterListener(context, () => {});
    await this.listener.listen('127.0.0.1', 0);
    this.forwarder = new Forwarder({
      context,
      dial: (of, target, listener) =>
        dialLink(of, target, {
          open: (link) => {
            this.links.push(link);
            return listener.open(link);
          },
          failed: (error) => listener.failed(error),
        }),
      leaderOf: () => {
        this.beforeForwarding();
        return this.leader;
      },
      notThere: () => this.notThere(),
      confirmed: () => this.confirmed(),
      waitMs: () => 2000,
      knowsIdentities: () => true,
    });
    this.server = new InfluxServer({
      host: '127.0.0.1',
      port: 0,
      store,
      authenticator: new PeopleAuthenticator(store, (credentials) => {
        this.requests++;
        if (credentials.kind !== 'password' || credentials.password !== 'right') return undefined;
        const everything = (): boolean => true;
        return { name: 'me', isAdmin: true, mayRead: everything, mayWrite: everything };
      }),
      forwarder: this.forwarder,
      writeTimeoutMs: 60_000,
      report: () => {},
    });
    this.listener.serve(httpPurpose, {
      open: (link) => {
        const stream = new LinkStream(link);
        this.streams.add(stream);
        this.server.serveForwarded(stream);
        return stream.handler;
      },
    });
    this.port = await this.server.listen();
  }

  get place(): LeadingNode {
    return { node: this.number, host: '127.0.0.1', port: this.listener.port };
  }

  async close(): Promise<void> {
    this.forwarder.close();
    await this.server.close();
    await this.listener.close();
  }
}

let nodes: Node[] = [];
afterEach(async () => {
  for (const node of nodes) await node.close();
});

/** The second one leads. */
async function start(): Promise<[Node, Node]> {
  nodes = [new Node(1), new Node(2)];
  const [first, second] = nodes as [Node, Node];
  for (const node of nodes) await node.start();
  second.leader = 'here';
  first.leader = second.place;
  second.store.change({ kind: 'createDatabase', database: 'db' });
  return [first, second];
}

const credentials = 'u=me&p=right';

function url(node: Node, path: string): string {
  return `http://127.0.0.1:${node.port}${path}`;
}

async function post(node: Node, path: string, body: Buffer | string, headers = {}) {
  const response = await fetch(url(node, path), { method: 'POST', body, headers });
  const { status } = response;
  return { status, headers: response.headers, text: await response.text() };
}

const write = `/write?db=db&${credentials}`;

async function count(node: Node): Promise<number> {
  const query = encodeURIComponent('SELECT count(v) FROM m');
  const response = await fetch(url(node, `/query?db=db&q=${query}&${credentials}`));
  const { results } = (await response.json()) as {
    results: { series?: { values: number[][] }[]; error?: string }[];
  };
  expect(results[0]!.error).toBeUndefined();
  return results[0]!.series?.[0]?.values[0]![1] ?? 0;
}

test('what one node is asked the leading one answers', async () => {
  const [first, second] = await start();
  const written = await post(first, write, 'm v=1 1\nm v=2 2');
  expect([written.status, written.headers.get('x-influxdb-version')]).toEqual([204, '1.8.10']);
  expect(await count(first)).toBe(2);
  expect(await count(second)).toBe(2);
  expect(first.store.databases()).toEqual([]);
  const packed = await post(first, write, gzipSync('m v=3 3'), { 'Content-Encoding': 'gzip' });
  expect(packed.status).toBe(204);
  const bad = await post(first, write, 'no line');
  expect([bad.status, bad.headers.get('x-influxdb-error')]).toEqual([
    400,
    expect.stringContaining('unable to parse'),
  ]);
  const unknown = await post(first, `/write?db=other&${credentials}`, 'm v=1');
  expect([unknown.status, unknown.text]).toEqual([
    404,
    '{"error":"database not found: \\"other\\""}\n',
  ]);
  const made = await post(first, `/query?${credentials}`, 'q=CREATE+DATABASE+made', {
    'Content-Type': 'application/x-www-form-urlencoded',
  });
  expect(made.status).toBe(200);
  expect(second.store.databases().map(({ name }) => name)).toEqual(['db', 'made']);
  const inForm = await post(first, '/query', `db=db&q=SHOW+DATABASES&${credentials}`, {
    'Content-Type': 'application/x-www-form-urlencoded',
  });
  expect(inForm.text).toContain('made');
  expect(await count(first)).toBe(3);
});

test('it asks for credentials itself, and so does the leading one', async () => {
  const [first, second] = await start();
  const wrong = await post(first, '/write?db=db&u=me&p=wrong', 'm v=1');
  expect([wrong.status, second.requests]).toEqual([401, 0]);
  expect((await post(first, write, 'm v=1 1')).status).toBe(204);
  expect([first.requests, second.requests]).toEqual([2, 1]);
});

test('large bodies and large answers flow', async () => {
  const [first, second] = await start();
  const lines = Array.from({ length: 120_000 }, (_, n) => `m,s=${n % 10} v=${n} ${n}`).join('\n');
  expect((await post(first, write, lines)).status).toBe(204);
  expect(await count(second)).toBe(120_000);
  const query = encodeURIComponent('SELECT v FROM m');
  const path = `/query?db=db&chunked=true&q=${query}&${credentials}`;
  const [here, there] = await Promise.all(
    [first, second].map(async (node) => await (await fetch(url(node, path))).text()),
  );
  expect(here === there).toBe(true);
  expect(here!.length).toBeGreaterThan(2_000_000);
});

test('many clients share links', async () => {
  const [first, second] = await start();
  for (let round = 0; round < 3; round++) {
    await Promise.all(
      Array.from({ length: 50 }, async (_, n) => {
        expect((await post(first, write, `m,s=${n} v=1 ${round + 1}`)).status).toBe(204);
      }),
    );
  }
  expect(await count(second)).toBe(150);
  expect(second.streams.size).toBeLessThan(120);
});

test('it waits for a leader, and follows it', async () => {
  const [first, second] = await start();
  first.leader = undefined;
  const waiting = post(first, write, 'm v=1 1');
  await pause(100);
  expect(await count(second)).toBe(0);
  first.leader = second.place;
  expect((await waiting).status).toBe(204);
  // The other one does not lead any more, and this one knows it a little later.
  second.leader = undefined;
  const again = post(first, write, 'm v=2 2');
  await pause(100);
  first.store.change({ kind: 'createDatabase', database: 'db' });
  first.leader = 'here';
  expect((await again).status).toBe(204);
  expect(await count(first)).toBe(1);
});

test.each(['the leading node', 'another node'])(
  'a body whose outcome is unknown is given again, and changes nothing then, at %s',
  async (where) => {
    const [first, second] = await start();
    const asked = where === 'another node' ? first : second;
    const store = second.store.write.bind(second.store);
    let left = 3;
    const identities = new Set<string | undefined>();
    second.store.write = (...batch) => {
      const outcome = store(...batch);
      const { identity } = batch[2];
      identities.add(identity?.id);
      if (left-- > 0) throw new OutcomeUnknownError();
      return outcome;
    };
    // Points without a time are of when the body came.
    const written = await post(asked, write, gzipSync('m v=1\nm,s=a v=2 7'), {
      'Content-Encoding': 'gzip',
    });
    expect(written.status).toBe(204);
    expect(left).toBeLessThan(0);
    // The points are decades apart, and go as two batches: each has one identity all the time.
    const ends = [/^[-0-9a-f]{36}:0\+1$/, /^[-0-9a-f]{36}:1\+1$/];
    expect([...identities]).toEqual(ends.map((end) => expect.stringMatching(end)));
    expect(await count(second)).toBe(2);
  },
);

test('a body of which the leader cannot know whether it is stored is given once', async () => {
  const [first, second] = await start();
  let given = 0;
  second.store.write = () => {
    given++;
    throw new OutcomeUnknownError(true);
  };
  for (const node of [first, second]) {
    const answer = await post(node, write, 'm v=1 1');
    expect([answer.status, answer.text]).toEqual([503, '{"error":"outcome unknown"}\n']);
  }
  expect(given).toBe(2);
});

test.each([
  ['a body', `POST ${write}`, 'm v=1 1', 204],
  ['a query', `GET /query?db=db&q=SHOW+DATABASES&${credentials}`, '', 200],
])(
  '%s with a header that names trailers is forwarded without it',
  async (_, line, body, status) => {
    const [first] = await start();
    const { hostname, port } = new URL(url(first, '/'));
    const socket = connect(Number(port), hostname);
    const text = new Promise<string>((resolve) => {
      let all = '';
      socket.on('data', (piece: Buffer) => (all += piece.toString()));
      socket.on('close', () => resolve(all));
    });
    const head = `${line} HTTP/1.1\r\nHost: localhost\r\nTrailer: Expires\r\nConnection: close\r\n`;
    socket.write(`${head}Content-Length: ${body.length}\r\n\r\n${body}`);
    expect(await text).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  },
);

test('a body is given again when the link to the leading node ends', async () => {
  const [first, second] = await start();
  let release = (): void => {};
  second.store.gate = new Promise((resolve) => (release = resolve));
  const waiting = post(first, write, 'm v=1 1');
  await pause(150);
  second.store.gate = undefined;
  for (const stream of second.streams) stream.destroy();
  release();
  expect((await waiting).status).toBe(204);
  expect(await count(second)).toBe(1);
});

test('without a leader it says so in the form of the protocol', async () => {
  const [first] = await start();
  first.leader = undefined;
  const v1 = await post(first, write, 'm v=1 1');
  expect([v1.status, v1.text]).toEqual([503, '{"error":"this database has no leader now"}\n']);
  expect(v1.headers.get('retry-after')).toBe('1');
  const v2 = await post(first, `/api/v2/write?bucket=db&${credentials}`, 'm v=1 1');
  expect([v2.status, JSON.parse(v2.text)]).toEqual([
    503,
    { code: 'unavailable', message: 'this database has no leader now' },
  ]);
});

test('a node that is not there is tried again until there is another', async () => {
  const [first, second] = await start();
  first.leader = { node: 9, host: '127.0.0.1', port: second.listener.port };
  const waiting = post(first, write, 'm v=1 1');
  await pause(150);
  first.leader = second.place;
  expect((await waiting).status).toBe(204);
});

test('a link that ends leaves the outcome of a write unknown, and a query is asked again', async () => {
  const [first, second] = await start();
  const sent = new Promise<{ status: number; text: string }>((resolve, reject) => {
    const request = httpRequest(url(first, write), {
      method: 'POST',
      headers: { 'Transfer-Encoding': 'chunked' },
    });
    request.on('error', reject);
    request.on('response', (response) => {
      let text = '';
      response.on('data', (piece: Buffer) => (text += piece.toString()));
      response.on('end', () => resolve({ status: response.statusCode!, text }));
    });
    request.write('m v=1 1\n');
    void pause(200).then(() => {
      for (const stream of second.streams) stream.destroy();
    });
  });
  expect(await sent).toEqual({ status: 503, text: '{"error":"outcome unknown"}\n' });
  expect(await count(first)).toBe(0);
});

test.each(['small', 'large'])(
  'a %s request is sent again where its link ends just then',
  async (size) => {
    const [first] = await start();
    const body = `m v=1 1\n${size === 'small' ? '' : `m v=2 2 \n`.repeat(150_000)}`;
    // Several links are free afterwards.
    await Promise.all(Array.from({ length: 4 }, () => post(first, write, 'm v=1 1')));
    expect(first.links.length).toBeGreaterThan(1);
    first.beforeForwarding = () => {
      first.beforeForwarding = () => {};
      for (const link of first.links.slice(1)) link.close();
    };
    expect((await post(first, write, body)).status).toBe(204);
  },
);

// A process that was stopped for a while may not have heard of the next leader, nor of what that one has made.
const deposed = {
  'that is asked': ([first, second]: readonly Node[]) => {
    first!.leader = 'here';
    first!.confirmed = () => {
      first!.leader = second!.place;
      return Promise.reject(new NotLeaderError(0));
    };
    return second!;
  },
  'that another node asks': ([first, second]: readonly Node[]) => {
    first!.store.change({ kind: 'createDatabase', database: 'db' });
    second!.store.change({ kind: 'dropDatabase', database: 'db' });
    first!.leader = second!.place;
    second!.confirmed = () => Promise.reject(new NotLeaderError(0));
    first!.notThere = () => (first!.leader = 'here');
    return first!;
  },
};

test.each(Object.entries(deposed))(
  'a node %s and does not know that it leads no more has the next leader asked',
  async (_, depose) => {
    const [first] = await start();
    const next = depose(nodes);
    const written = await post(first, write, 'm v=1 1');
    expect([written.status, written.text]).toEqual([204, '']);
    depose(nodes);
    expect(await count(first)).toBe(1);
    expect(await count(next)).toBe(1);
  },
);

// How a client of the Redis plane fares while a heavy query keeps the InfluxDB plane busy: the latency of
// commands sent at a steady rate, against the same server without the query.

import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { createConnection, type Socket } from 'node:net';
import { startPolyrowSeries } from './support/series-servers.ts';
import { machine, printTable, save, type Report, type Row } from './support/report.ts';
import { request } from './support/resp-client.ts';
import { median, percentile } from './support/statistics.ts';
import {} from './support/processes.ts';
import { postLines } from './support/influx-http.ts';
import { freePort } from '../test/support/free-port.ts';

interface PlanesOptions {
  rounds: number;
  /** Length of a measurement. */
  seconds: number;
  connections: number;
  /** Commands a second over all connections. */
  rate: number;
  /** Points that the query goes through. */
  points: number;
}

export const planesDefaults: PlanesOptions = {
  rounds: 5,
  seconds: 6,
  connections: 8,
  rate: 2000,
  points: 4_000_000,
};

const hosts = 100;
/** Between two points of a host. */
const stepSeconds = 10;
const linesPerBody = 10_000;
const warmUpMs = 1000;

export async function planesBench(options: PlanesOptions, command: string): Promise<Report> {
  const redisPort = await freePort();
  const server = await startPolyrowSeries('everysec', ['--redis.port', String(redisPort)]);
  try {
    await load(server.port, options.points);
    const idle: number[][] = [];
    const busy: number[][] = [];
    let queries = 0;
    for (let round = 1; round <= options.rounds; round++) {
      process.stderr.write(`\rround ${round} of ${options.rounds}   `);
      idle.push(await latencies(redisPort, options));
      const heavy = keepAsking(server.port, options.points);
      busy.push(await latencies(redisPort, options));
      queries += await heavy.end();
    }
    process.stderr.write('\n');
    if (queries === 0) throw new Error('no query was answered while the latencies were taken');
    const row = (name: string, share: number, target?: number): Row => {
      const of = (rounds: number[][]): number => median(rounds.map((ms) => percentile(ms, share)));
      const ours = of(busy);
      const peer = of(idle);
      const row: Row = { name, unit: 'ms', ours, peer, ratio: ours / peer, better: 'lower' };
      return target === undefined ? row : { ...row, target };
    };
    const report: Report = {
      bench: 'planes',
      command,
      date: new Date().toISOString(),
      machine: machine(),
      peer: 'itself, idle',
      rounds: options.rounds,
      settings: { ...options, queries },
      rows: [
        row('GET p50 beside a heavy query', 0.5),
        row('GET p99 beside a heavy query', 0.99, 1.2),
      ],
    };
    printTable(report);
    save(report, 'planes');
    return report;
  } finally {
    await server.stop();
  }
}

async function load(port: number, points: number): Promise<void> {
  let lines: string[] = [];
  for (let i = 0; i < points; i++) {
    const time = Math.floor(i / hosts) * stepSeconds;
    lines.push(`m,host=h${i % hosts} v=${(i * 7919) % 1000},w=${(i % 977) / 10} ${time}`);
    if (lines.length < linesPerBody && i + 1 < points) continue;
    await postLines(port, 'benchmark', lines.join('\n'), 's');
    lines = [];
  }
}

/** One query after the other, until the end; how many were answered. */
function keepAsking(port: number, points: number): { end: () => Promise<number> } {
  const end = (points / hosts) * stepSeconds;
  const heavyQuery =
    'SELECT percentile(v, 99), stddev(v), mean(w) FROM m ' +
    `WHERE time >= 0 AND time < ${end}s GROUP BY time(1h), host`;
  let ended = false;
  let answered = 0;
  const asking = (async () => {
    while (!ended) {
      const query = new URLSearchParams({ db: 'benchmark', q: heavyQuery });
      await readThrough(`http://127.0.0.1:${port}/query?${query.toString()}`);
      answered++;
    }
    return answered;
  })();
  return {
    end: () => {
      ended = true;
      return asking;
    },
  };
}

/** Reads an answer without parsing it: parsing would delay the commands of this process. */
async function readThrough(url: string): Promise<void> {
  const [response] = (await once(get(url), 'response')) as [IncomingMessage];
  let first = '';
  for await (const piece of response) first ||= (piece as Buffer).toString('latin1', 0, 200);
  if (!first.includes('"values"')) throw new Error(`the query failed: ${first}`);
}

/** Milliseconds from when each command was due to its answer: a stall counts for all that it delayed. */
async function latencies(port: number, options: PlanesOptions): Promise<number[]> {
  const { connections, rate, seconds } = options;
  const sockets = await Promise.all(Array.from({ length: connections }, () => connect(port)));
  const taken: number[] = [];
  const due: number[][] = sockets.map(() => []);
  const startedAt = performance.now();
  sockets.forEach((socket, n) => {
    socket.on('data', (data: Buffer) => {
      const now = performance.now();
      // Every answer is the line of a missing key, of five bytes.
      for (let answers = data.length / 5; answers > 0; answers--) {
        const at = due[n]!.shift()!;
        if (at - startedAt > warmUpMs) taken.push(now - at);
      }
    });
  });
  const command = request('GET', 'none');
  const total = rate * seconds;
  for (let sent = 0; sent < total; ) {
    const now = performance.now();
    while (sent < total && startedAt + (sent * 1000) / rate <= now) {
      const n = sent % connections;
      due[n]!.push(startedAt + (sent * 1000) / rate);
      sockets[n]!.write(command);
      sent++;
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  while (due.some((waiting) => waiting.length > 0)) {
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  for (const socket of sockets) socket.destroy();
  return taken;
}

function connect(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = createConnection(port, '127.0.0.1', () => resolve(socket));
    socket.setNoDelay(true);
    socket.once('error', reject);
  });
}

// BullMQ adds jobs at one node, and workers at all of them do them, until its input ends. Words: ports, key, the directory
// with node_modules. A job notes its number in a set; those that were acknowledged must all be there.

import { createRequire } from 'node:module';

const [, , ports, key, directory] = process.argv;
const required = createRequire(`${directory}/x.js`);
const { Queue, Worker } = required('bullmq');
const Redis = required('ioredis');
const connections = ports
  .split(',')
  .map((port) => ({ host: '127.0.0.1', port: Number(port), maxRetriesPerRequest: null }));
const result = { written: 0, refused: [], errors: {}, longestGapMs: 0 };
let isOver = false;
process.stdin.resume().on('end', () => (isOver = true));

const failed = ({ message }) => (result.errors[message] = (result.errors[message] ?? 0) + 1);
/** Connections that break are made again by themselves: an error is what a job or a call ends with. */
const ignored = () => undefined;
const notes = new Redis(connections[0]);
notes.on('error', ignored);
for (const connection of connections) {
  const worker = new Worker(key, async (job) => notes.rpush(key, String(job.data.n)), {
    connection,
  });
  worker.on('error', ignored);
  worker.on('failed', (_job, error) => failed(error));
}
const queue = new Queue(key, { connection: connections[0] });
queue.on('error', ignored);
let last = performance.now();
for (let n = 0; !isOver; n++) {
  result.written++;
  try {
    await queue.add('job', { n }, { attempts: 5, backoff: 100, removeOnComplete: true });
    result.longestGapMs = Math.max(result.longestGapMs, performance.now() - last);
    last = performance.now();
  } catch (error) {
    failed(error);
    result.refused.push(n);
  }
  await new Promise((resolve) => setTimeout(resolve, 10));
}
// Until none is left to do, a minute at most: what is not done then counts as lost.
for (let i = 0; i < 600; i++) {
  const counts = await queue.getJobCounts('waiting', 'active', 'delayed', 'failed');
  if (counts.waiting + counts.active + counts.delayed === 0) break;
  await new Promise((resolve) => setTimeout(resolve, 100));
}
console.log(JSON.stringify(result));
process.exit(0);

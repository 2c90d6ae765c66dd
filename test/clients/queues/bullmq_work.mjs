// Work of BullMQ's kinds. Words: port, the directory with node_modules. Prints `passed` at the end.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const [, , port, directory] = process.argv;
const { FlowProducer, Queue, QueueEvents, Worker } = createRequire(`${directory}/x.js`)('bullmq');
const connection = { host: '127.0.0.1', port: Number(port), maxRetriesPerRequest: null };

/** A queue of its own with a worker, closed when `use` is done. */
async function withQueue(name, process, options, use) {
  const queue = new Queue(name, { connection });
  queue.setMaxListeners(100);
  const worker = new Worker(name, process, { connection, ...options });
  const events = new QueueEvents(name, { connection });
  await Promise.all([queue.waitUntilReady(), worker.waitUntilReady(), events.waitUntilReady()]);
  await use(queue, worker, events);
  await Promise.all([worker.close(), events.close()]);
  await queue.obliterate({ force: true });
  await queue.close();
}

const doubled = async (job) => job.data.n * 2;

// Many jobs, several at a time; results come by events.
await withQueue('many', doubled, { concurrency: 10 }, async (queue, _worker, events) => {
  const jobs = await queue.addBulk(
    Array.from({ length: 200 }, (_, n) => ({ name: 'job', data: { n } })),
  );
  const results = await Promise.all(jobs.map((job) => job.waitUntilFinished(events)));
  assert.deepEqual(
    results,
    Array.from({ length: 200 }, (_, n) => n * 2),
  );
  assert.equal(await queue.getCompletedCount(), 200);
  assert.equal(await queue.getWaitingCount(), 0);
});

// Delayed jobs come when they are due, in that order.
const due = [];
await withQueue(
  'delayed',
  async (job) => due.push(job.data.n),
  {},
  async (queue, _w, events) => {
    const startedAt = Date.now();
    const late = await queue.add('job', { n: 2 }, { delay: 400 });
    const soon = await queue.add('job', { n: 1 }, { delay: 200 });
    assert.equal(await queue.getDelayedCount(), 2);
    await Promise.all([late.waitUntilFinished(events), soon.waitUntilFinished(events)]);
    assert.deepEqual(due, [1, 2]);
    assert.ok(Date.now() - startedAt >= 400);
  },
);

// Priorities, and a queue that is paused meanwhile.
const order = [];
await withQueue(
  'order',
  async (job) => order.push(job.data.n),
  {},
  async (queue, _w, events) => {
    await queue.pause();
    const jobs = [];
    for (const n of [3, 1, 2]) jobs.push(await queue.add('job', { n }, { priority: n }));
    assert.equal(await queue.isPaused(), true);
    assert.deepEqual(order, []);
    await queue.resume();
    await Promise.all(jobs.map((job) => job.waitUntilFinished(events)));
    assert.deepEqual(order, [1, 2, 3]);
  },
);

// Retries with a delay between them; and one that fails for good.
const fails = async (job) => {
  if (job.attemptsMade < job.data.failures) throw new Error(`attempt ${job.attemptsMade}`);
  return job.attemptsMade;
};
await withQueue('retries', fails, {}, async (queue, _worker, events) => {
  const options = { attempts: 3, backoff: { type: 'fixed', delay: 50 } };
  const good = await queue.add('job', { failures: 2 }, options);
  assert.equal(await good.waitUntilFinished(events), 2);
  const bad = await queue.add('job', { failures: 9 }, options);
  await assert.rejects(bad.waitUntilFinished(events), /attempt 2/);
  assert.equal(await queue.getFailedCount(), 1);
});

// A flow: the parent runs after its children, with what they gave.
const summed = async (job) => {
  if (job.name !== 'parent') return job.data.n;
  const values = Object.values(await job.getChildrenValues());
  return values.reduce((a, b) => a + b, 0);
};
await withQueue('flow', summed, { concurrency: 2 }, async (_queue, _worker, events) => {
  const flows = new FlowProducer({ connection });
  const children = [1, 2, 3].map((n) => ({ name: 'child', queueName: 'flow', data: { n } }));
  const { job } = await flows.add({ name: 'parent', queueName: 'flow', children });
  assert.equal(await job.waitUntilFinished(events), 6);
  await flows.close();
});

// A schedule makes jobs again and again; a rate limit holds them back.
let runs = 0;
await withQueue(
  'schedule',
  async () => runs++,
  {},
  async (queue) => {
    await queue.upsertJobScheduler('often', { every: 50 }, { name: 'job' });
    while (runs < 3) await new Promise((resolve) => setTimeout(resolve, 10));
    assert.equal((await queue.getJobSchedulers()).length, 1);
    await queue.removeJobScheduler('often');
  },
);
const limiter = { max: 5, duration: 200 };
await withQueue('limited', doubled, { limiter, concurrency: 10 }, async (queue, _w, events) => {
  const startedAt = Date.now();
  const jobs = await queue.addBulk(
    Array.from({ length: 15 }, (_, n) => ({ name: 'job', data: { n } })),
  );
  await Promise.all(jobs.map((job) => job.waitUntilFinished(events)));
  assert.ok(Date.now() - startedAt >= 350);
});

console.log('passed');

// Metrics of a thread's queue of password hashes.

import { hashKinds } from '../../access/gateway/hash-queue.ts';
import { hashQueue } from '../../access/gateway/secrets.ts';
import type { MetricSample } from '../../control/monitor/metric-sample.ts';
import { adder } from './pod-samples.ts';

/** `thread` is the plane, or `control`. */
export function hashSamples(thread: string): MetricSample[] {
  const samples: MetricSample[] = [];
  for (const kind of hashKinds) {
    const add = adder(samples, { thread, kind });
    const { started, refused } = hashQueue;
    add('gauge', 'password_hashes_waiting', 'Password hashes queued.', hashQueue.waiting(kind));
    add('counter', 'password_hashes', 'Password hashes started.', started[kind]);
    add(
      'counter',
      'password_hashes_refused',
      'Logins and password changes refused because too many of the tenant were queued.',
      refused[kind],
    );
  }
  return samples;
}

// How an exchange waits in a queue of an admission stage: until it is admitted or refused, its client has gone, or its
// query was killed.

import type { Exchange } from '../http/exchange.ts';
import { ClientGone } from '../http/http-error.ts';
import { QueryError } from '../influxql/result.ts';
import type { QueryTask } from '../statements/query-registry.ts';

interface AdmissionQueue {
  /** Enqueues the exchange; `ended` is to be called once, with whether it is admitted. */
  enter(ended: (isAdmitted: boolean) => void): void;
  /** Whether it was still queued. */
  leave(): boolean;
}

/**
 * Resolves to whether the exchange was admitted; the time is added to its `waitedMs`. Throws `ClientGone`, and
 * `QueryError` when the query was killed.
 */
export function untilAdmitted(
  exchange: Exchange,
  queue: AdmissionQueue,
  task?: QueryTask,
): Promise<boolean> {
  const queuedAt = performance.now();
  return new Promise((resolve, reject) => {
    const { response } = exchange;
    const leave = (reason: Error): void => {
      response.off('close', gone);
      if (queue.leave()) reject(reason);
    };
    const gone = (): void => leave(new ClientGone());
    if (!exchange.isOpen) {
      queue.leave();
      reject(new ClientGone());
      return;
    }
    queue.enter((isAdmitted) => {
      response.off('close', gone);
      exchange.waitedMs += performance.now() - queuedAt;
      resolve(isAdmitted);
    });
    response.once('close', gone);
    task?.whenKilled(() => leave(new QueryError(task.reason ?? '')));
  });
}

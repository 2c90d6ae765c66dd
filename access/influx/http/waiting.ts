// How a request waits in a line: until it is let in or refused, its client has gone, or somebody ends it.

import { QueryError } from '../influxql/result.ts';
import type { QueryTask } from '../statements/query-registry.ts';
import type { Exchange } from './exchange.ts';
import { ClientGone } from './http-error.ts';

export interface Line {
  /** Lines up; `ended` is to be called once, with whether it is let in. False if there is no room. */
  enter(ended: (letIn: boolean) => void): boolean;
  /** Whether it was still in line. */
  leave(): boolean;
}

/** Resolves to whether it was let in. Throws `ClientGone`, and `QueryError` when the query was killed. */
export function untilLetIn(exchange: Exchange, line: Line, task?: QueryTask): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const { response } = exchange;
    const leave = (why: Error): void => {
      response.off('close', gone);
      if (line.leave()) reject(why);
    };
    const gone = (): void => leave(new ClientGone());
    const ended = (letIn: boolean): void => {
      response.off('close', gone);
      resolve(letIn);
    };
    if (!exchange.isOpen) {
      line.leave();
      reject(new ClientGone());
      return;
    }
    if (!line.enter(ended)) {
      resolve(false);
      return;
    }
    response.once('close', gone);
    task?.whenKilled(() => leave(new QueryError(task.reason ?? '')));
  });
}

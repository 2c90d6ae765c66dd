// The plane's end of the line to the main thread.

import { once } from 'node:events';
import type { MessagePort } from 'node:worker_threads';
import type { PlaneCall, PlaneData, PlaneHandlers, PlaneReport } from './messages.ts';

/** What the plane is to start with. Calls follow only after it has reported that it is ready. */
export async function planeData(port: MessagePort): Promise<PlaneData> {
  const [data] = (await once(port, 'message')) as [PlaneData];
  return data;
}

/** Answers the main thread's calls, each as soon as its handler is done. */
export function serveCalls(port: MessagePort, handlers: PlaneHandlers): void {
  port.on('message', (call: PlaneCall) => {
    answer(handlers, call).then(
      (value) => report(port, { type: 'answer', id: call.id, value }),
      (error: unknown) => report(port, { type: 'failed', id: call.id, error: messageOf(error) }),
    );
  });
}

export function report(port: MessagePort, message: PlaneReport): void {
  port.postMessage(message);
}

async function answer(handlers: PlaneHandlers, call: PlaneCall): Promise<unknown> {
  // Which argument belongs to which call is fixed by PlaneCalls on both sides.
  const handler = handlers[call.call] as (argument: unknown) => unknown;
  return await handler(call.argument);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

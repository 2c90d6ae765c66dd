// The plane's end of the line to the main thread.

import { once } from 'node:events';
import type { MessagePort } from 'node:worker_threads';
import type { ChunkDisk } from '../../storage-node/backup/chunk-format.ts';
import { RemoteChunks } from '../../storage-node/backup/remote-chunks.ts';
import { realDisk } from '../../storage-node/disk/real-disk.ts';
import type {
  ControlAnswer,
  ControlArgument,
  ControlCallName,
  ControlResult,
  PlaneCall,
  PlaneData,
  PlaneHandlers,
  PlaneReport,
} from './messages.ts';

/** Start parameters of the plane. Calls follow only after it has reported that it is ready. */
export async function planeData(port: MessagePort): Promise<PlaneData> {
  const [data] = (await once(port, 'message')) as [PlaneData];
  return data;
}

/** Answers the main thread's calls, each as soon as its handler is done. */
export function serveCalls(port: MessagePort, handlers: PlaneHandlers): void {
  port.on('message', (call: PlaneCall | ControlAnswer) => {
    if ('answers' in call) {
      hear(call);
      return;
    }
    answer(handlers, call).then(
      (value) => report(port, { type: 'answer', id: call.id, value }),
      (error: unknown) => report(port, { type: 'failed', id: call.id, error: messageOf(error) }),
    );
  });
}

interface Asked {
  resolve: (value: unknown) => void;
  reject: (error: Error) => void;
}

// A thread has one main thread.
const asked = new Map<number, Asked>();
let lastAsked = 0;

/** Asks the control plane, which answers calls of others meanwhile: `serveCalls` must be running. */
export function ask<K extends ControlCallName>(
  port: MessagePort,
  call: K,
  argument: ControlArgument<K>,
): Promise<ControlResult<K>> {
  const id = ++lastAsked;
  return new Promise((resolve, reject) => {
    asked.set(id, { resolve: resolve as (value: unknown) => void, reject });
    report(port, { type: 'asks', id, call, argument });
  });
}

function hear({ answers, value, error }: ControlAnswer): void {
  const waiting = asked.get(answers);
  asked.delete(answers);
  if (error === undefined) waiting?.resolve(value);
  else waiting?.reject(new Error(error));
}

/** Where chunk files of a backup are: on a node of the cluster, or here if that is undefined. */
export function chunkDiskOf(port: MessagePort): (node: number | undefined) => ChunkDisk {
  return (node) =>
    node === undefined
      ? realDisk
      : new RemoteChunks((request) => ask(port, 'chunk', { node, request }));
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

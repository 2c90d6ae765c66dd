// A thread of its own that pings one plane, one ping at a time, and tells how long answers took: the other client.
// A ping that is not answered yet counts with the time it has waited.

import { connect } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';

export interface PingerData {
  plane: 'redis' | 'influx';
  port: number;
  /** Password of the default user of Redis, where it has one. */
  password?: string | undefined;
}

/** Asked for by any message; the figures begin anew with it. */
export interface Pings {
  count: number;
  longestMs: number;
  /** Pings that were not answered because the connection ended. */
  lost: number;
}

const pauseMs = 1;
const { plane, port, password } = workerData as PingerData;
const ping =
  plane === 'redis'
    ? Buffer.from('*1\r\n$4\r\nPING\r\n')
    : Buffer.from('GET /ping HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n');
const endOf = plane === 'redis' ? '\r\n' : '\r\n\r\n';

let pings: Pings = { count: 0, longestMs: 0, lost: 0 };
/** When the ping under way was sent. */
let sentAt: number | undefined;

function note(): void {
  if (sentAt === undefined) return;
  pings.longestMs = Math.max(pings.longestMs, performance.now() - sentAt);
}

function open(): void {
  const socket = connect(port, '127.0.0.1');
  socket.setNoDelay(true);
  let text = '';
  const send = (): void => {
    if (socket.destroyed) return;
    sentAt = performance.now();
    socket.write(ping);
  };
  socket.on('connect', () => {
    // Its reply counts as a ping's.
    if (plane === 'redis' && password !== undefined) {
      sentAt = performance.now();
      socket.write(`AUTH ${password}\r\n`);
    } else send();
  });
  socket.on('data', (bytes) => {
    text += bytes.toString('latin1');
    if (!text.endsWith(endOf)) return;
    text = '';
    note();
    pings.count++;
    sentAt = undefined;
    setTimeout(send, pauseMs);
  });
  socket.on('error', () => {});
  socket.on('close', () => {
    note();
    pings.lost++;
    // Until it is served again it counts as waiting since it was cut off.
    setTimeout(open, 20);
  });
}

open();

parentPort!.on('message', () => {
  note();
  parentPort!.postMessage(pings);
  pings = { count: 0, longestMs: 0, lost: 0 };
});

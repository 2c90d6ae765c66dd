// Connections that their clients have closed. Node takes some tens of microseconds to end a socket, and thousands of
// clients may close at the same moment, so the sockets are ended in slices.

import type { Socket } from 'node:net';
import { FirstCome, RoundQueue } from './round-queue.ts';

export class EndedInputs {
  readonly #queue = new RoundQueue<() => void>(new FirstCome(), (end) => end());

  /** Defers the end of this socket's input to a time slice. Node signals the end by `push(null)`. */
  follow(socket: Socket): void {
    const push = socket.push.bind(socket);
    socket.push = (chunk, encoding) => {
      if (chunk !== null) return push(chunk, encoding);
      this.#queue.add(() => {
        push(null);
        // As Node does after it: a stream without a reader ends as well.
        socket.read(0);
      });
      return false;
    };
  }
}

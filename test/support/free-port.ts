import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Below the ports that the system gives to outgoing connections and to listeners on port 0: one of
 * those could be taken by another process before the server that it is meant for listens on it.
 */
const [firstPort, endOfPorts] = [10_000, 20_000];
const given = new Set<number>();

/** A port of 127.0.0.1 on which no server listens, and which this process was not given before. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = firstPort + Math.floor(Math.random() * (endOfPorts - firstPort));
    if (given.has(port)) continue;
    given.add(port);
    const server = createServer().listen(port, '127.0.0.1');
    try {
      await once(server, 'listening');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
      continue;
    }
    server.close();
    await once(server, 'close');
    return port;
  }
}

// Clients that send arbitrary bytes. Answers are read as bytes, and a connection that the server
// closes is an answer.

import { connect, type Socket } from 'node:net';

const patienceMs = 120_000;

export type Word = string | number | Buffer;

/** A command of bulk strings, which may hold any bytes. */
export function command(words: readonly Word[]): Buffer {
  const parts: Buffer[] = [Buffer.from(`*${words.length}\r\n`)];
  for (const word of words) {
    const bytes = Buffer.isBuffer(word) ? word : Buffer.from(String(word));
    parts.push(Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from('\r\n'));
  }
  return Buffer.concat(parts);
}

export class Wire {
  readonly #socket: Socket;
  #received: Buffer[] = [];
  #wake: (() => void) | undefined;
  /** The server has closed the connection. */
  closed = false;

  static connect(port: number): Promise<Wire> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, '127.0.0.1', () => {
        socket.off('error', reject);
        resolve(new Wire(socket));
      });
      socket.once('error', reject);
    });
  }

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on('data', (bytes) => {
      this.#received.push(bytes);
      this.#wake?.();
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      this.closed = true;
      this.#wake?.();
    });
  }

  send(bytes: Buffer | string): void {
    if (!this.closed) this.#socket.write(bytes);
  }

  /** Reads no more until told to. */
  pause(): void {
    this.#socket.pause();
  }

  /**
   * Reads until `isWhole` returns true, or the server closes the connection. Throws when neither
   * happens.
   */
  async read(isWhole: (bytes: Buffer) => boolean): Promise<Buffer> {
    const deadline = performance.now() + patienceMs;
    for (;;) {
      const bytes = Buffer.concat(this.#received);
      this.#received = [bytes];
      if (isWhole(bytes) || this.closed) {
        this.#received = [];
        return bytes;
      }
      await this.#more(deadline - performance.now());
    }
  }

  /** Lets so many bytes pass without keeping them, or all until the server closes the connection. */
  async skip(bytes: number): Promise<void> {
    const deadline = performance.now() + patienceMs;
    let left = bytes;
    for (;;) {
      for (const piece of this.#received) left -= piece.length;
      this.#received = [];
      if (left <= 0 || this.closed) return;
      await this.#more(deadline - performance.now());
    }
  }

  /** The first line that comes. */
  async line(): Promise<string> {
    const bytes = await this.read((all) => all.includes(10));
    return bytes.toString('latin1').split('\r\n')[0]!;
  }

  async ask(...words: readonly Word[]): Promise<string> {
    this.send(command(words));
    return await this.line();
  }

  close(): void {
    this.#socket.destroy();
  }

  async #more(ms: number): Promise<void> {
    if (ms <= 0) throw new Error(`no answer in ${patienceMs / 1000} s`);
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

interface HttpRequest {
  method?: string;
  path: string;
  headers?: Readonly<Record<string, string>>;
  body?: Buffer | string;
}

/** A request as bytes, with a connection of its own. */
export function httpBytes({ method = 'GET', path, headers = {}, body }: HttpRequest): Buffer {
  const all: Record<string, string> = { Host: '127.0.0.1', Connection: 'close', ...headers };
  const bytes = Buffer.from(body ?? '');
  if (body !== undefined && all['Content-Length'] === undefined) {
    all['Content-Length'] = String(bytes.length);
  }
  const head = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.concat([
    Buffer.from(`${method} ${path} HTTP/1.1\r\n${head.join('')}\r\n`, 'latin1'),
    bytes,
  ]);
}

/** The status, 0 where the server closed the connection without one, and the first megabyte of the answer. */
export async function http(
  port: number,
  request: HttpRequest,
): Promise<{ status: number; text: string }> {
  const wire = await Wire.connect(port);
  try {
    wire.send(httpBytes(request));
    const bytes = await wire.read((all) => all.length > 1 << 20);
    const text = bytes.toString('latin1');
    return { status: Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0), text };
  } finally {
    wire.close();
  }
}

/** A statement by POST. Throws unless it was done. */
export async function influxStatement(port: number, q: string, database = ''): Promise<void> {
  const { status, text } = await http(port, {
    method: 'POST',
    path: '/query',
    headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ db: database, q }).toString(),
  });
  if (status !== 200 || text.includes('"error"')) throw new Error(`${q}: ${text}`);
}

export async function influxWrite(port: number, database: string, lines: string): Promise<void> {
  const { status, text } = await http(port, {
    method: 'POST',
    path: `/write?db=${database}`,
    body: lines,
  });
  if (status !== 204) throw new Error(`a write was answered ${text.slice(0, 500)}`);
}

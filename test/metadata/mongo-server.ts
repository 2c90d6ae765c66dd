// Servers that speak MongoDB's protocol, as child processes: killed, paused and started again on the same
// port and data. Which of them can be had here is found out once a test file; the tests say so.

import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { MongoClient } from 'mongodb';
import { goTool } from '../support/go-tools.ts';
import { freePort } from '../support/free-port.ts';

interface ServerKind {
  name: string;
  /** Acknowledged writes survive a kill. */
  durable: boolean;
  /** Has change streams. */
  streams: boolean;
  command(port: number, directory: string): { program: string; words: string[] };
  /** Once, after the first start. */
  initiate?(port: number): Promise<void>;
}

const run = promisify(execFile);
const buildTimeoutMs = 300_000;

export class MongoServer {
  readonly kind: ServerKind;
  readonly port: number;
  readonly #directory: string;
  #child: ChildProcess | undefined;

  private constructor(kind: ServerKind, port: number) {
    this.kind = kind;
    this.port = port;
    this.#directory = mkdtempSync(join(tmpdir(), 'polyrow-mongo-'));
  }

  static async start(kind: ServerKind): Promise<MongoServer> {
    const server = new MongoServer(kind, await freePort());
    try {
      await server.start();
      await kind.initiate?.(server.port);
    } catch (error) {
      await server.remove();
      throw error;
    }
    return server;
  }

  uri(database: string, port = this.port): string {
    return `mongodb://127.0.0.1:${port}/${database}?directConnection=true`;
  }

  async start(): Promise<void> {
    const { program, words } = this.kind.command(this.port, this.#directory);
    // Standard input stays open as long as this process runs.
    const child = spawn(program, words, { stdio: ['pipe', 'ignore', 'ignore'] });
    const failure = once(child, 'error');
    this.#child = child;
    const client = new MongoClient(this.uri('admin'), { serverSelectionTimeoutMS: 30_000 });
    try {
      await Promise.race([
        client.db('admin').command({ ping: 1 }),
        failure.then(([error]) => Promise.reject(error as Error)),
        once(child, 'exit').then(() => Promise.reject(new Error(`${program} ended`))),
      ]);
    } finally {
      await client.close();
    }
  }

  async kill(): Promise<void> {
    const child = this.#child!;
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }

  pause(): void {
    this.#child!.kill('SIGSTOP');
  }

  resume(): void {
    this.#child!.kill('SIGCONT');
  }

  async drop(database: string): Promise<void> {
    const client = new MongoClient(this.uri('admin'), { serverSelectionTimeoutMS: 5000 });
    try {
      await client.db(database).dropDatabase();
    } finally {
      await client.close();
    }
  }

  async remove(): Promise<void> {
    if (this.#child !== undefined) await this.kill();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

/** All that can be had here, real ones first, and why the others cannot. */
export async function availableServers(): Promise<{ kinds: ServerKind[]; missing: string[] }> {
  const found = [mongod(), await ferretdb(), await javaServer()];
  const kinds = found.filter((one): one is ServerKind => typeof one !== 'string');
  const missing = found.filter((one) => typeof one === 'string');
  const used = kinds.map(({ name }) => name).join(', ') || 'no server at all: tests are skipped';
  console.info(`MongoDB's protocol is tried with ${used}. ${missing.join('. ')}`);
  return { kinds, missing };
}

function mongod(): ServerKind | string {
  if (spawnSync('mongod', ['--version']).status !== 0) return 'mongod is not installed';
  return {
    name: 'mongod, a replica set of one',
    durable: true,
    streams: true,
    command: (port, directory) => ({
      program: 'mongod',
      words: [
        '--replSet',
        'rs',
        '--port',
        `${port}`,
        '--bind_ip',
        '127.0.0.1',
        '--dbpath',
        directory,
      ],
    }),
    initiate: async (port) => {
      const client = new MongoClient(`mongodb://127.0.0.1:${port}/?directConnection=true`);
      const admin = client.db('admin');
      const members = [{ _id: 0, host: `127.0.0.1:${port}` }];
      await admin.command({ replSetInitiate: { _id: 'rs', members } });
      while (!(await admin.command({ hello: 1 }))['isWritablePrimary']) await sleep(100);
      await client.close();
    },
  };
}

async function ferretdb(): Promise<ServerKind | string> {
  const module = join(import.meta.dirname, 'ferretdb');
  const tool = await goTool({ module, program: 'polyrow/test/ferretdb' });
  if ('missing' in tool) return tool.missing;
  return {
    name: 'FerretDB on SQLite',
    durable: true,
    streams: false,
    command: (port, directory) => ({
      program: tool.path,
      words: [`127.0.0.1:${port}`, directory],
    }),
  };
}

async function javaServer(): Promise<ServerKind | string> {
  const folder = join(import.meta.dirname, 'mongo-java-server');
  const project = join(folder, 'pom.xml');
  const version = createHash('sha256').update(readFileSync(project)).digest('hex').slice(0, 12);
  const jars = join(tmpdir(), `polyrow-mongo-java-server-${version}`);
  if (!existsSync(jars)) {
    if (spawnSync('mvn', ['--version']).status !== 0) return 'mongo-java-server needs Maven';
    const making = `${jars}.${process.pid}`;
    mkdirSync(making, { recursive: true });
    const words = ['-q', '-B', '-f', project, 'dependency:copy-dependencies'];
    try {
      await run('mvn', [...words, `-DoutputDirectory=${making}`], { timeout: buildTimeoutMs });
      renameSync(making, jars);
    } catch (error) {
      rmSync(making, { recursive: true, force: true });
      // Another test file may have made them meanwhile.
      if (!existsSync(jars)) return `mongo-java-server cannot be had: ${(error as Error).message}`;
    }
  }
  return {
    name: 'mongo-java-server in memory',
    durable: false,
    streams: true,
    command: (port) => ({
      program: 'java',
      words: ['-cp', `${jars}/*`, join(folder, 'InMemoryServer.java'), `${port}`],
    }),
  };
}

// Three control planes that keep the metadata, each a process, killed with SIGKILL or stopped for some seconds in turn
// while clients count at all of them. Nothing that was acknowledged may be lost or made twice, no count may go back.
// KILLS says how many there are.

import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import type {
  MemberAnswer,
  MemberProcessOptions,
  MemberRequest,
} from '../../server/cluster/member-process-fixture.ts';
import { Random } from '../../storage-node/replicator/simulation/timeline.ts';

const dist = process.env['DIST_DIR'] ?? fileURLToPath(new URL('../../dist', import.meta.url));
const program = join(dist, 'server/cluster/member-process-fixture.js');
const kills = Number(process.env['KILLS'] ?? (process.env['POLYROW_FULL'] ? 200 : 4));
const random = new Random(Number(process.env['KILL_SEED'] ?? 1));

type Value = Extract<MemberAnswer, { kind: 'answer' }>['value'];

class Member {
  node = 0;
  port = 0;
  #child: ChildProcess | undefined;
  readonly #directory: string;
  readonly #waiting = new Map<number, (value: Value) => void>();
  #nextId = 1;

  constructor(root: string, name: string) {
    this.#directory = join(root, name);
    mkdirSync(this.#directory);
  }

  get isUp(): boolean {
    return this.#child !== undefined;
  }

  async start(begin: 'form' | 'join', seeds: string[] = []): Promise<this> {
    const options: MemberProcessOptions = {
      ...{ directory: this.#directory, port: this.port, begin, seeds },
    };
    const child = fork(program, [JSON.stringify(options)]);
    await new Promise<void>((resolve, reject) => {
      child.once('exit', (code) => reject(new Error(`node ${this.node} ended with ${code}`)));
      child.on('message', (message: MemberAnswer) => {
        if (message.kind === 'ready') {
          ({ port: this.port, node: this.node } = message);
          resolve();
        } else this.#waiting.get(message.id)?.(message.value);
      });
    });
    this.#child = child;
    return this;
  }

  ask(kind: MemberRequest['kind'], name = ''): Promise<Value> {
    const child = this.#child;
    if (child === undefined) return Promise.resolve('refused');
    const id = this.#nextId++;
    return new Promise((resolve) => {
      this.#waiting.set(id, (value) => {
        this.#waiting.delete(id);
        resolve(value);
      });
      child.send({ id, kind, name } satisfies MemberRequest);
    });
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child?.kill(signal);
  }

  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    this.#child = undefined;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await gone;
    for (const end of this.#waiting.values()) end('unknown');
  }
}

const members: Member[] = [];
const roots: string[] = [];
afterEach(async () => {
  for (const member of members.splice(0)) await member.kill();
  for (const root of roots.splice(0)) rmSync(root, { recursive: true });
});

test('nothing of the metadata is lost or made twice when nodes are killed and stopped', async () => {
  const root = mkdtempSync(join(tmpdir(), 'polyrow-metadata-'));
  roots.push(root);
  const first = await new Member(root, 'a').start('form');
  members.push(first);
  for (const name of ['b', 'c']) {
    members.push(await new Member(root, name).start('join', [`127.0.0.1:${first.port}`]));
  }
  const counters = ['x', 'y'].map((name) => ({ name, made: 0, unknown: 0, seen: 0 }));
  let isDone = false;
  const counting = Array.from({ length: 6 }, async (_, i) => {
    const counter = counters[i % 2]!;
    for (let turn = i; !isDone; turn++) {
      const before = counter.seen;
      const value = await members[turn % 3]!.ask('count', counter.name);
      if (value === 'unknown') counter.unknown++;
      else if (value === 'refused') await sleep(20);
      else if (value !== 'conflict') {
        // All that was acknowledged before the question is there.
        expect(value).toBeGreaterThan(before);
        counter.made++;
        counter.seen = Math.max(counter.seen, value);
      }
    }
  });
  for (let done = 0; done < kills; done++) {
    await sleep(random.below(1500));
    const leader = Number(await members.find(({ isUp }) => isUp)!.ask('leader'));
    // Mostly who leads: all others notice that.
    const found = members.find(({ node }) => node === leader);
    const victim = found && random.below(3) > 0 ? found : members[random.below(3)]!;
    if (random.below(2) === 0) {
      victim.signal('SIGSTOP');
      await sleep(500 + random.below(3000));
      victim.signal('SIGCONT');
    } else {
      await victim.kill();
      await sleep(random.below(1000));
      await victim.start('join');
    }
  }
  await sleep(500);
  isDone = true;
  await Promise.all(counting);
  for (const { name, made, unknown } of counters) {
    const values = await Promise.all(members.map((member) => member.ask('get', name)));
    expect(new Set(values).size, values.join()).toBe(1);
    expect(made).toBeGreaterThan(kills);
    expect(values[0]).toBeGreaterThanOrEqual(made);
    expect(values[0]).toBeLessThanOrEqual(made + unknown);
  }
}, 600_000);

// One round of the log bench, in a process of its own, so that each kind of log meets a fresh heap and code
// compiled for it alone: `node log-round.js '{"log":"group",...}'` prints a `LogSpeed`.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { set } from '../../universal-row/transforms/redis/string-values.ts';
import { RespWriter } from '../../access/redis/resp-writer.ts';
import type { Pod } from '../../storage-node/pod.ts';
import { Arguments } from '../../universal-row/arguments.ts';
import { Action, type Command } from '../../universal-row/command.ts';
import type { LogRound, LogSpeed } from '../log-cost.ts';
import { openLogPod } from './log-pod.ts';
import { seededRandom } from './random.ts';

const keys = 65_536;
const keyBytes = 16;
const valueBytes = 100;
const warmUpMs = 1000;

/** SETs of random keys, as a parser would have left them in its buffer. */
class SetCommands {
  readonly command: Command;
  readonly #args = new Arguments();
  readonly #order: Uint32Array;
  #next = 0;

  constructor() {
    const random = seededRandom(1);
    this.#order = Uint32Array.from({ length: keys }, () => random() * keys);
    const texts = Array.from({ length: keys }, (_, i) => `key:${String(i).padStart(12, '0')}`);
    this.#args.buf = Buffer.from(`SET${'x'.repeat(valueBytes)}${texts.join('')}`);
    this.#args.count = 3;
    this.#args.starts.set([0, 3 + valueBytes, 3]);
    this.#args.lens.set([3, keyBytes, valueBytes]);
    const run = { action: Action.put, name: 'set', transform: set, grows: true, table: 0 };
    const span = { first: 0, count: 1 };
    this.command = { ...run, span, args: this.#args };
  }

  next(): Command {
    const key = this.#order[this.#next++ & (keys - 1)]!;
    this.#args.starts[1] = 3 + valueBytes + key * keyBytes;
    return this.command;
  }
}

/** SETs for `lengthMs`, a tick after the other, each when the one before is safe. */
function run(
  pod: Pod,
  round: LogRound,
  commands: SetCommands,
  lengthMs: number,
): Promise<LogSpeed> {
  const reply = new RespWriter();
  const startedAt = performance.now();
  const cpuBefore = process.cpuUsage();
  let done = 0;
  return new Promise((resolve) => {
    const again = (): void => void setImmediate(tick);
    const tick = (): void => {
      const elapsed = performance.now() - startedAt;
      if (elapsed >= lengthMs) {
        const { user, system } = process.cpuUsage(cpuBefore);
        resolve({ perSecond: (done / elapsed) * 1000, cpuMicros: (user + system) / done });
        return;
      }
      for (let i = 0; i < round.tick; i++) void pod.execute(commands.next(), reply);
      done += round.tick;
      const position = pod.endTick();
      if (reply.pos !== round.tick * '+OK\r\n'.length) throw new Error('not every SET was done');
      reply.reset();
      pod.whenSettled(position, again);
    };
    tick();
  });
}

async function main(round: LogRound): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'polyrow-bench-log-'));
  try {
    const pod = await openLogPod(round.log, round.fsync, directory);
    const commands = new SetCommands();
    await run(pod, round, commands, warmUpMs);
    console.log(JSON.stringify(await run(pod, round, commands, round.seconds * 1000)));
    await pod.close();
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

await main(JSON.parse(process.argv[2] ?? '') as LogRound);

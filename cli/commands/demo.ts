// `polyrow demo`: demonstrates features on a server of its own.

import { type Command, InvalidArgumentError, Option } from 'commander';
import type { Kind } from '../demo/workloads.ts';
import type { NoisyNeighbour, Watcher } from '../demo/noisy-neighbour.ts';
import { ExitError } from '../../server/lifecycle/exit-error.ts';
import { exitCodes } from '../../server/exit-codes.ts';
import { wholeNumber } from './argument-values.ts';

interface DemoFlags {
  over: Kind | 'all';
  seconds: number;
  json?: true;
}

export function demoCommand(program: Command): void {
  const demo = program.command('demo').description('Demonstrate the server, on a temporary one.');
  demo
    .command('noisy-neighbour')
    .description(
      'Let one tenant flood the server with 20 times its quota, and measure the effect on another.',
    )
    .addOption(
      new Option('--over <what>', 'how the tenants speak to the server')
        .choices(['redis', 'influx-writes', 'influx-queries', 'all'])
        .default('redis'),
    )
    .option('--seconds <number>', 'time of each of the three phases', someSeconds, 10)
    .option('--json', 'the outcome in JSON, and nothing else')
    .action(noisyNeighbour);
}

function someSeconds(text: string): number {
  const seconds = wholeNumber(text);
  if (seconds === 0) throw new InvalidArgumentError('It must be a number above 0.');
  return seconds;
}

async function noisyNeighbour({ over, seconds, json }: DemoFlags): Promise<void> {
  const { kinds } = await import('../demo/workloads.ts');
  const demo = await import('../demo/noisy-neighbour.ts');
  const stop = new AbortController();
  // Stop the started processes before this one ends.
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.once(name, () => stop.abort(new ExitError('stopped', exitCodes.failed)));
  }
  const outcomes: NoisyNeighbour[] = [];
  for (const kind of over === 'all' ? kinds : [over]) {
    const watcher = json ? silent : await teller();
    const options = { over: kind, seconds, signal: stop.signal };
    const outcome = await demo.noisyNeighbour(options, watcher).catch((error: unknown) => {
      throw stop.signal.aborted ? stop.signal.reason : error;
    });
    outcomes.push(outcome);
    if (json) continue;
    const { outcomeText } = await import('../output/noisy-neighbour-view.ts');
    process.stdout.write(`${await outcomeText(outcome)}\n`);
  }
  if (json) process.stdout.write(`${JSON.stringify(over === 'all' ? outcomes : outcomes[0])}\n`);
  const fellShort = outcomes.some(({ checks }) => checks.some(({ pass }) => !pass));
  if (fellShort) process.exitCode = exitCodes.failed;
}

const silent: Watcher = { step: () => {}, begins: () => {}, second: () => {} };

async function teller(): Promise<Watcher> {
  const { phaseTitle, secondLine } = await import('../output/noisy-neighbour-view.ts');
  const say = (text: string): void => void process.stdout.write(`${text}\n`);
  let quota = 0;
  return {
    step: (text) => say(`${text} …`),
    begins: (phase, itsQuota) => {
      quota = itsQuota;
      say(phaseTitle(phase, quota));
    },
    second: (phase, sample) => say(secondLine(phase, sample, quota)),
  };
}

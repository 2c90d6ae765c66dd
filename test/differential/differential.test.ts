// One seeded stream of random commands to this server and to redis-server 7.0, compared answer by answer.
//
//   POLYROW_FULL=1             a million commands for each model and protocol instead of a few thousand
//   DIFFERENTIAL_COMMANDS=n    that many
//   DIFFERENTIAL_SEED=n        another stream, or one that failed before

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { redisInstalled } from '../commands/redis-server.ts';
import { Polyrow } from '../support/polyrow.ts';
import { RedisProcess } from '../support/redis-server.ts';
import { Comparison, type Difference, showStep } from './comparison.ts';
import { Generator, type Step } from './generator.ts';

const full = process.env['POLYROW_FULL'] === '1';
const commands = Number(process.env['DIFFERENTIAL_COMMANDS'] ?? (full ? 1_000_000 : 10_000));
const seed = Number(process.env['DIFFERENTIAL_SEED'] ?? (full ? Date.now() % 1_000_000 : 1));
/** After these the servers are emptied: the longest run that ever has to be shrunk. */
const chapterLength = 2500;
const mostReports = Number(process.env['DIFFERENTIAL_REPORTS'] ?? 20);

describe.skipIf(!redisInstalled)(
  `${commands} random commands, as redis-server answers them`,
  () => {
    let redis: RedisProcess;
    beforeAll(async () => {
      redis = await RedisProcess.start();
    });
    afterAll(async () => {
      await redis.remove();
    });

    // Over TCP the pods of the server are behind the link that gateways in other processes have to them.
    describe.each([
      ['memory', ''],
      ['kv', ''],
      ['memory', 'tcp'],
      ['kv', 'tcp'],
    ] as const)('the %s model %s', (model, carrier) => {
      let polyrow: Polyrow;
      beforeAll(async () => {
        // A small cache makes the kv engine go to its files now and then.
        const flags = ['--redis.default-model', model, '--kv.cache-bytes', '1mb'];
        polyrow = await Polyrow.start({ flags, env: { TEST_POD_CARRIER: carrier } });
      });
      afterAll(async () => {
        await polyrow.stop();
        await polyrow.remove();
      });

      test.each([2, 3] as const)('RESP%i', { timeout: 3_600_000 }, async (version) => {
        const comparison = new Comparison(
          await polyrow.client(version),
          await redis.client(version),
        );
        const reports: string[] = [];
        for (let chapter = 0; chapter * chapterLength < commands; chapter++) {
          const length = Math.min(chapterLength, commands - chapter * chapterLength);
          const chapterSeed = seed + chapter * 2 + version;
          const report = await runChapter(comparison, chapterSeed, length);
          if (report !== undefined) reports.push(`seed ${chapterSeed}, ${report}`);
          if (reports.length === mostReports) break;
        }
        expect(reports.join('\n\n')).toBe('');
      });
    });
  },
);

/** Differences in a stream that begins with empty servers. */
async function runChapter(
  comparison: Comparison,
  chapterSeed: number,
  length: number,
): Promise<string | undefined> {
  const generator = new Generator(chapterSeed);
  const steps = Array.from({ length }, () => generator.next());
  await comparison.reset();
  for (let from = 0; from < length; from += 50) {
    const difference = await comparison.run(steps.slice(from, from + 50));
    if (difference === undefined) continue;
    const at = from + difference.at;
    return await tell(comparison, steps.slice(0, at + 1), difference);
  }
  const difference = await comparison.contents();
  if (difference === undefined) return undefined;
  return `contents differ after ${length} steps: ours ${difference.ours}, theirs ${difference.theirs}`;
}

async function tell(
  comparison: Comparison,
  steps: readonly Step[],
  { ours, theirs }: Difference,
): Promise<string> {
  const least = await comparison.shrink(steps);
  const again = await comparison.run(least);
  const lines = [
    `step ${steps.length - 1}: ${showStep(steps.at(-1)!)}`,
    `  ours:   ${again?.ours ?? ours}`,
    `  theirs: ${again?.theirs ?? theirs}`,
    again === undefined ? '  (not seen again alone)' : '  seen again with:',
    ...least.map((step) => `    ${showStep(step)}`),
  ];
  return lines.join('\n');
}

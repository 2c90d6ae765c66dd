// Runs made-up command lines through the transforms and through redis-server, and wants the same answers.

import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { CommandSpec } from '../../access/redis/commands/spec.ts';
import { shortWork } from '../../universal-row/steps.ts';
import { withinTime } from '../support/time-limit.ts';
import { Harness } from './harness.ts';
import { RedisServer, redisInstalled } from './redis-server.ts';

/** Commands whose answers come in no particular order. */
const unordered = /^(HGETALL|HKEYS|HVALS|SMEMBERS|SPOP|SINTER|SUNION|SDIFF) /;

const usual = { ...shortWork };
/** With these every command that has a long form takes it. */
const none = { elements: 0, bytes: 0 };

interface Choices {
  /** Runs that once failed. */
  examples?: readonly (readonly string[])[];
  /** Whether two answers to a command are the same, where that is not equality. */
  alike?: (command: string, ours: string, theirs: string) => boolean;
}

/** `line` makes one command line. Random picks and cursors have no place in it. */
export function testDifferential(
  specs: readonly CommandSpec[],
  line: fc.Arbitrary<string>,
  { examples = [], alike = () => false }: Choices = {},
): void {
  describe.skipIf(!redisInstalled)('like redis-server 7.0 on made-up commands', () => {
    let server: RedisServer;
    beforeAll(async () => {
      server = await RedisServer.start();
    });
    afterAll(async () => {
      await server.stop();
    });

    afterEach(() => Object.assign(shortWork, usual));

    const forms = [
      { version: 2, short: usual },
      { version: 3, short: usual },
      { version: 2, short: none },
      { version: 3, short: none },
    ];
    test.each(forms)('in RESP$version, short up to $short.elements', async ({ version, short }) => {
      Object.assign(shortWork, short);
      await server.run(`HELLO ${version}`);
      const lines = fc.array(line, { minLength: 1, maxLength: 60, size: 'max' });
      const compare = async (commands: readonly string[]): Promise<void> => {
        await server.run('FLUSHALL');
        const harness = new Harness(specs);
        harness.resp = version;
        for (const command of commands) {
          const sorted = unordered.test(command);
          const answer = harness.run(command, sorted);
          const theirs = await server.run(command, sorted);
          if (alike(command, answer, theirs)) continue;
          expect(`${command}\n${answer}`).toBe(`${command}\n${theirs}`);
        }
      };
      for (const example of examples) await compare(example);
      await fc.assert(fc.asyncProperty(lines, withinTime(4000, compare)), { numRuns: 200 });
    });
  });
}

/** A line of words, each one of those given or made by an arbitrary; '' leaves one out. */
export function words(...parts: (string | fc.Arbitrary<string>)[]): fc.Arbitrary<string> {
  const arbitraries = parts.map((part) => (typeof part === 'string' ? fc.constant(part) : part));
  return fc.tuple(...arbitraries).map((all) => all.filter((word) => word !== '').join(' '));
}

/** From one to `most` words of a kind, as one part of a line. */
export function several(part: fc.Arbitrary<string>, most = 4): fc.Arbitrary<string> {
  return fc.array(part, { minLength: 1, maxLength: most }).map((all) => all.join(' '));
}

/** A number and then as many words: `2 a b`. */
export function counted(part: fc.Arbitrary<string>, most = 3): fc.Arbitrary<string> {
  return fc
    .array(part, { minLength: 1, maxLength: most })
    .map((all) => `${all.length} ${all.join(' ')}`);
}

export const oneOf = (...choices: string[]): fc.Arbitrary<string> => fc.constantFrom(...choices);

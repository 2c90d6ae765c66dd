// A transcript is a text file of commands with the replies of redis-server 7.0.15:
//
//   # a comment; the database is empty again after it
//   > GET missing
//   (nil)
//
// `~` in place of `>` sorts the items of the answer, where their order is undefined. `> HELLO 3`
// and `> HELLO 2` change the protocol and have no answer. With UPDATE_TRANSCRIPTS=1 and a
// redis-server the replies are regenerated from Redis.

import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { CommandSpec } from '../../access/redis/commands/spec.ts';
import { MemoryEngine } from '../../engines/memory/memory-engine.ts';
import { Harness } from './harness.ts';
import { RedisServer, redisInstalled } from './redis-server.ts';
import { StrictTables } from './strict-table.ts';

interface Step {
  sorted: boolean;
  command: string;
  answer: string;
}

interface Section {
  title: string;
  steps: Step[];
}

/** Checks a transcript against the transforms, over two kinds of tables, and against redis-server itself when it is installed. */
export function testTranscript(path: string, specs: readonly CommandSpec[]): void {
  const sections = read(path);

  const tables = { 'strict tables': () => new StrictTables(), memory: () => new MemoryEngine() };
  describe.each(Object.entries(tables))('as Redis answered, on %s', (_, makeTables) => {
    test.each(sections)('$title', ({ steps }) => {
      const harness = new Harness(specs, makeTables());
      harness.rows.fixedNow = Date.now();
      for (const { sorted, command, answer } of steps) {
        if (isHello(command)) harness.resp = Number(command.at(-1));
        else expect(`${command}\n${harness.run(command, sorted)}`).toBe(`${command}\n${answer}`);
      }
    });
  });

  describe.skipIf(!redisInstalled)('as redis-server 7.0 answers now', () => {
    let server: RedisServer;
    beforeAll(async () => {
      server = await RedisServer.start();
    });
    afterAll(async () => {
      await server.stop();
      if (process.env['UPDATE_TRANSCRIPTS']) writeFileSync(path, write(sections));
    });

    test.each(sections)('$title', async ({ steps }) => {
      await server.run('HELLO 2');
      await server.run('SELECT 0');
      await server.run('FLUSHALL');
      for (const step of steps) {
        const answer = await server.run(step.command, step.sorted);
        if (process.env['UPDATE_TRANSCRIPTS']) step.answer = answer;
        else if (!isHello(step.command)) {
          expect(`${step.command}\n${answer}`).toBe(`${step.command}\n${step.answer}`);
        }
      }
    });
  });
}

function isHello(command: string): boolean {
  return /^HELLO [23]$/.test(command);
}

function read(path: string): Section[] {
  const sections: Section[] = [];
  for (const line of readFileSync(path, 'utf8').split('\n')) {
    const section = sections.at(-1);
    if (line.startsWith('# ')) sections.push({ title: line.slice(2), steps: [] });
    else if (/^[>~] /.test(line)) {
      section?.steps.push({ sorted: line[0] === '~', command: line.slice(2), answer: '' });
    } else if (line !== '' && section?.steps.length) section.steps.at(-1)!.answer = line;
  }
  return sections;
}

function write(sections: readonly Section[]): string {
  return sections
    .map(({ title, steps }) => {
      const lines = steps.map(({ sorted, command, answer }) => {
        const line = `${sorted ? '~' : '>'} ${command}\n`;
        return isHello(command) ? line : `${line}${answer}\n`;
      });
      return `# ${title}\n${lines.join('')}`;
    })
    .join('\n');
}

// Upstream's interaction transcripts, played inside the module through the wrapper. What they say but for the lines
// of the library's log must come out the same. The files come from the Go module cache or proxy and are not kept here.

import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { Interaction } from './interaction-fixture.ts';
import type { Command } from './interaction-fixture.ts';

const transcripts = 28;
const commands = 558;

interface Step extends Command {
  line: number;
  expected: string;
}

/** Where the files are, undefined without Go or its proxy. */
function folder(): string | undefined {
  const path = `${process.env['PATH']}${delimiter}/usr/local/go/bin`;
  try {
    const json = execFileSync('go', ['mod', 'download', '-json', 'go.etcd.io/raft/v3'], {
      cwd: fileURLToPath(new URL('../wrapper', import.meta.url)),
      env: { ...process.env, PATH: path },
      encoding: 'utf8',
      stdio: 'pipe',
    });
    const found = join((JSON.parse(json) as { Dir: string }).Dir, 'testdata');
    return existsSync(found) ? found : undefined;
  } catch {
    return undefined;
  }
}

function parseArgs(line: string): Command['args'] {
  return [...line.matchAll(/(\S+?)=\(([^)]*)\)|(\S+?)=(\S+)|(\S+)/g)].map(
    ([, listKey, list, key, value, word]) => {
      if (listKey !== undefined) return { key: listKey, values: list!.split(/[\s,]+/) };
      return key === undefined ? { key: word!, values: [] } : { key, values: [value!] };
    },
  );
}

function parse(text: string): Step[] {
  const lines = text.split('\n');
  const steps: Step[] = [];
  for (let at = 0; at < lines.length; at++) {
    const first = lines[at]!;
    if (first.trim() === '' || first.startsWith('#')) continue;
    const line = at + 1;
    const until = (end: string): string => {
      const from = ++at;
      while (at < lines.length && lines[at] !== end) at++;
      return lines.slice(from, at).join('\n');
    };
    const [name, ...rest] = first.split(' ');
    const input = until('----');
    const expected = until('');
    steps.push({ name: name!, args: parseArgs(rest.join(' ')), input, line, expected });
  }
  return steps;
}

/** Without the lines of the library's log, in which only the wording of etcd is told. */
function withoutLog(text: string): string {
  const kept = text
    .split('\n')
    .filter((line) => !/^\s*(DEBUG|INFO|WARN|ERROR|FATAL)\b/.test(line))
    .join('\n')
    .trimEnd();
  return kept === '' ? 'ok' : kept;
}

const data = folder();
const files = data === undefined ? [] : readdirSync(data).filter((name) => name.endsWith('.txt'));

describe.skipIf(data === undefined)(
  `upstream's transcripts${data === undefined ? ' (skipped: neither Go nor its module proxy)' : ''}`,
  () => {
    let total = 0;

    test.each(files)('%s', (file) => {
      const interaction = new Interaction();
      const steps = parse(readFileSync(join(data!, file), 'utf8'));
      total += steps.length;
      for (const step of steps) {
        const place = `${file}:${step.line} ${step.name}`;
        expect(`${place}\n${withoutLog(interaction.run(step))}`).toBe(
          `${place}\n${withoutLog(step.expected)}`,
        );
      }
    });

    test('all of them were played', () => {
      expect(files).toHaveLength(transcripts);
      expect(total).toBe(commands);
    });
  },
);

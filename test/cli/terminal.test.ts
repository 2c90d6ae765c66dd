// Commands on a terminal, emulated by python's pty.

import { execFile, execFileSync } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Polyrow } from '../support/polyrow.ts';
import { RespClient } from '../support/resp-client.ts';
import { isBuilt, main } from './polyrow-process.ts';

const hasPython = ((): boolean => {
  try {
    execFileSync('python3', ['-c', 'import os, pty; os.waitstatus_to_exitcode']);
    return true;
  } catch {
    return false;
  }
})();
const canRun = isBuilt && hasPython;

let server: Polyrow;
beforeAll(async () => {
  if (canRun) server = await Polyrow.start();
});
afterAll(() => server?.remove());

// Terminal codes for switching to the other screen, and for showing the cursor and back.
const otherScreen = '\u001b[?1049h';
const back = '\u001b[?25h\u001b[?1049l';

type Typing = readonly (readonly [waitFor: string, type: string])[];

/** Output on the terminal, and the exit code. */
async function onTerminal(typing: Typing, ...words: string[]): Promise<[string, number]> {
  const script = [`${import.meta.dirname}/terminal.py`, JSON.stringify(typing)];
  const program = [process.execPath, main, ...words, '--data-dir', server.dataDir];
  const { stdout } = await promisify(execFile)('python3', [...script, ...program]);
  const lines = stdout.trimEnd().split('\n');
  return [lines.slice(0, -1).join('\n').replaceAll('\r', ''), Number(lines.at(-1))];
}

describe.skipIf(!canRun)('on a terminal', () => {
  test('a password is asked for twice, and never shown', async () => {
    const [shown, code] = await onTerminal(
      [
        ['Password of default@shop: ', 'first try\r'],
        ['Again: ', 'another\r'],
        ['Password of default@shop: ', 'geheim 1\rgeheim 1\r'],
      ],
      ...['tenant', 'create', 'shop', '--password-prompt'],
    );
    expect(code).toBe(0);
    expect(shown).toContain('They are not the same.');
    expect(shown).not.toMatch(/geheim|first try|another/);
    const client = await RespClient.connect(server.redisPort);
    expect(await client.text('AUTH', 'shop', 'geheim 1')).toMatch(/OK/);
    client.close();
  });

  test('Ctrl-C at a password gives up', async () => {
    const typing: Typing = [['Password of', '\u0003']];
    const [shown, code] = await onTerminal(typing, 'user', 'passwd', 'default@shop');
    expect([code, shown]).toEqual([1, expect.stringContaining('given up')]);
  });

  test('what cannot be undone is done only after its name was typed', async () => {
    const drop = (name: string) =>
      onTerminal([['Type shop to go on: ', `${name}\r`]], 'tenant', 'drop', 'shop');
    expect((await drop('shpo'))[1]).toBe(1);
    expect((await onTerminal([], 'tenant', 'show', 'shop'))[1]).toBe(0);
    expect((await drop('shop'))[1]).toBe(0);
    expect((await onTerminal([], 'tenant', 'show', 'shop'))[1]).toBe(3);
  });

  test('top draws until q, and leaves the terminal as it was', async () => {
    const client = await RespClient.connect(server.redisPort);
    const working = setInterval(() => void client.command('INCR', 'n').catch(() => {}), 5);
    try {
      const typing: Typing = [['RU/s', 'q']];
      const [shown, code] = await onTerminal(typing, 'top', '--interval', '0.3');
      expect(code).toBe(0);
      expect(shown.startsWith(otherScreen)).toBe(true);
      expect(shown).toContain('looking');
      expect(shown).toContain('default');
      expect(shown.trimEnd().endsWith(back)).toBe(true);
    } finally {
      clearInterval(working);
      client.close();
    }
  });
});

import { execFileSync } from 'node:child_process';
import { Argument, Command, Option } from 'commander';
import { describe, expect, test } from 'vitest';
import { completionScript, type Shell, shells } from './completion.ts';

function program(): Command {
  const polyrow = new Command('polyrow');
  polyrow
    .command('start')
    .option('--redis.port <number>', 'port')
    .option('--config <file>', 'TOML');
  const tenant = polyrow.command('tenant').description("Everybody's. More.");
  tenant.command('create <name>').option('--json', 'JSON').option('--tls <off|on>', 'TLS');
  tenant
    .command('drop <name>')
    .addOption(new Option('--how <how>', 'how').choices(['now', 'soon']));
  polyrow.command('completion').addArgument(new Argument('<shell>').choices([...shells]));
  return polyrow;
}

/** Completions that bash would offer for the last word. */
function offered(...words: string[]): string[] {
  const script = `${completionScript(program(), 'bash')}
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _polyrow
printf '%s\\n' "\${COMPREPLY[@]}"`;
  const out = execFileSync('bash', ['-c', script, 'bash', ...words], { encoding: 'utf8' });
  return out.split('\n').filter((line) => line !== '');
}

const hasBash = (() => {
  try {
    execFileSync('bash', ['--version']);
    return true;
  } catch {
    return false;
  }
})();

describe.skipIf(!hasBash)('bash completes', () => {
  const check = (words: string[], expected: string[]) =>
    expect(offered('polyrow', ...words), words.join(' ')).toEqual(expect.arrayContaining(expected));

  test('commands', () => {
    check([''], ['start', 'tenant', 'completion', 'help']);
    expect(offered('polyrow', 'ten')).toEqual(['tenant']);
    check(['tenant', ''], ['create', 'drop']);
    expect(offered('polyrow', 'tenant', '')).not.toContain('start');
  });

  test('flags, of the command run without one as well', () => {
    check(['tenant', 'create', '--'], ['--json', '--tls', '--help']);
    check(['tenant', 'create', 'shop', '--js'], ['--json']);
    check(['--redis'], ['--redis.port']);
  });

  test('values', () => {
    expect(offered('polyrow', 'tenant', 'drop', '--how', '')).toEqual(['now', 'soon']);
    expect(offered('polyrow', 'tenant', 'create', '--tls', 'o')).toEqual(['off', 'on']);
    check(['completion', ''], ['bash', 'zsh', 'fish']);
  });

  test('files', () => {
    expect(offered('polyrow', 'start', '--config', 'package.js')).toEqual(['package.json']);
  });
});

test('every shell gets every command and flag, and quotes that end', () => {
  const check = (shell: Shell, ...parts: string[]) => {
    const script = completionScript(program(), shell);
    for (const part of parts) expect(script, shell).toContain(part);
  };
  check('bash', "'polyrow tenant create'", '--tls', 'complete -o default -F _polyrow polyrow');
  check('zsh', '#compdef polyrow', "'create:", "compadd -- 'now' 'soon'", "Everybody'\\''s");
  check('fish', "-n '__polyrow_at polyrow tenant drop' -l how", "-x -a 'now soon'");
});

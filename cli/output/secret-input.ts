// Passwords from people and programs. Never as an argument: arguments are visible to all users of
// the machine.

import { randomInt } from 'node:crypto';
import { createInterface, type Interface } from 'node:readline';
import { type Readable, Writable } from 'node:stream';
import { ExitError } from '../../server/lifecycle/exit-error.ts';
import { exitCodes } from '../../server/exit-codes.ts';

const longestBytes = 4096;

/** The first line of a stream, without its end. */
export async function readSecretLine(from: Readable = process.stdin): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of from) {
    const bytes = Buffer.from(chunk as Uint8Array | string);
    chunks.push(bytes);
    length += bytes.length;
    if (bytes.includes(10) || length > longestBytes) break;
  }
  const line = Buffer.concat(chunks).toString().split(/\r?\n/, 1)[0]!;
  if (line === '') throw new ExitError('standard input holds no password', exitCodes.usage);
  if (Buffer.byteLength(line) > longestBytes) {
    throw new ExitError('the password on standard input is too long', exitCodes.usage);
  }
  return line;
}

/** Prompts on the terminal without echo, until two entries agree. */
async function promptNewPassword(whose: string): Promise<string> {
  if (!process.stdin.isTTY) {
    throw new ExitError(
      'there is no terminal to ask for a password on: use --password-stdin or --generate-password',
      exitCodes.usage,
    );
  }
  const prompt = new HiddenPrompt();
  try {
    for (;;) {
      const password = await prompt.ask(`Password of ${whose}: `);
      if (password === '') process.stderr.write('It cannot be empty.\n');
      else if (password === (await prompt.ask('Again: '))) return password;
      else process.stderr.write('They are not the same.\n');
    }
  } finally {
    prompt.close();
  }
}

/** While it exists the terminal does not echo input. */
class HiddenPrompt {
  readonly #lines: Interface;
  readonly #typed: AsyncIterator<string>;

  constructor() {
    const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
    this.#lines = createInterface({ input: process.stdin, output: nowhere, terminal: true });
    this.#lines.on('SIGINT', () => this.#lines.close());
    this.#typed = this.#lines[Symbol.asyncIterator]();
  }

  async ask(question: string): Promise<string> {
    process.stderr.write(question);
    const { done, value } = await this.#typed.next();
    process.stderr.write('\n');
    if (done) throw new ExitError('given up');
    return value;
  }

  close(): void {
    this.#lines.close();
  }
}

// Without those that look alike.
const letters = 'abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789';

/** 24 letters and digits: about 139 bits. */
export function generatePassword(): string {
  return Array.from({ length: 24 }, () => letters[randomInt(letters.length)]!).join('');
}

export interface PasswordFlags {
  passwordStdin?: true;
  passwordPrompt?: true;
  generatePassword?: true;
}

interface WantedPassword {
  password: string;
  /** The password was generated here and must be shown once. */
  isGenerated: boolean;
}

/** The password that was asked for by a flag; without any, `otherwise` says how to come by one. */
export async function wantedPassword(
  flags: PasswordFlags,
  whose: string,
  otherwise: 'generate' | 'prompt',
): Promise<WantedPassword> {
  const { passwordStdin, passwordPrompt, generatePassword: generate } = flags;
  if ([passwordStdin, passwordPrompt, generate].filter(Boolean).length > 1) {
    throw new ExitError('only one flag can say where the password comes from', exitCodes.usage);
  }
  if (passwordStdin) return { password: await readSecretLine(), isGenerated: false };
  if (passwordPrompt || (!generate && otherwise === 'prompt')) {
    return { password: await promptNewPassword(whose), isGenerated: false };
  }
  return { password: generatePassword(), isGenerated: true };
}

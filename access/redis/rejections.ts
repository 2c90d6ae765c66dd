// Replies to commands that do not run: unknown ones, wrong numbers of arguments, not allowed now.

import type { Arguments } from '../../universal-row/arguments.ts';
import type { CommandEntry } from './commands/registry.ts';

export const noAuthText = 'NOAUTH Authentication required.';
/** Redis names the command and its first arguments, each cut, all in about so many bytes. */
const shownBytes = 128;

export const whileSubscribed: ReadonlySet<string> = new Set([
  'subscribe',
  'unsubscribe',
  'psubscribe',
  'punsubscribe',
  'ssubscribe',
  'sunsubscribe',
  'ping',
  'quit',
  'reset',
]);

/** Redis prints words as C strings, so they end at a zero byte. */
function clip(text: string, length: number): string {
  const end = text.indexOf('\0');
  return end >= 0 && end < length ? text.slice(0, end) : text.slice(0, length);
}

export function unknownCommand(args: Arguments): string {
  let words = '';
  for (let i = 1; i < args.count && words.length < shownBytes; i++) {
    words += `'${clip(args.latin1(i, shownBytes), shownBytes - words.length)}' `;
  }
  const name = clip(args.latin1(0, shownBytes), shownBytes);
  return `ERR unknown command '${name}', with args beginning with: ${words}`;
}

export function unknownSubcommand(container: CommandEntry, args: Arguments): string {
  const name = clip(args.latin1(1, shownBytes), shownBytes);
  return `ERR unknown subcommand '${name}'. Try ${container.spec.name.toUpperCase()} HELP.`;
}

/** Error for a command with a wrong number of arguments. */
export function wrongCount(entry: CommandEntry, count: number): string {
  return count > entry.maxWords
    ? `ERR too many arguments for '${entry.fullName}' command: at most ${entry.maxWords - 1}`
    : `ERR wrong number of arguments for '${entry.fullName}' command`;
}

export function notWhileSubscribed({ fullName }: CommandEntry): string {
  return `ERR Can't execute '${fullName}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context`;
}

/** Whether the words begin as a line of an HTTP request does that no Redis client sends. */
export function isHttp(args: Arguments): boolean {
  return args.is(0, 'POST') || args.is(0, 'HOST:');
}

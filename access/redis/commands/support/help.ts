// The HELP subcommand of a container, made from the container's own rows.

import type { CommandSpec } from '../spec.ts';

export function helpOf<C>(
  container: string,
  subcommands: readonly CommandSpec<C>[],
): CommandSpec<C> {
  const name = container.toUpperCase();
  return {
    name: 'help',
    arity: 2,
    flags: ['loading', 'stale'],
    group: subcommands[0]!.group,
    since: '5.0.0',
    summary: 'Returns helpful text about the different subcommands.',
    complexity: 'O(1)',
    handle(_connection, _args, reply) {
      const lines = [`${name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:`];
      for (const sub of subcommands) {
        lines.push(sub.name.toUpperCase(), `    ${sub.summary}`);
      }
      lines.push('HELP', '    Print this help.');
      reply.array(lines.length);
      for (const line of lines) reply.simple(line);
    },
  };
}

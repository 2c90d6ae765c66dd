// Completion scripts for shells, written from the tree of commands. They are static: a shell that completes
// starts no process.

import type { Command, Option } from 'commander';

export const shells = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof shells)[number];

interface Node {
  /** The words that lead to it, `polyrow tenant create`. */
  path: string;
  children: { word: string; text: string }[];
  flags: { word: string; text: string; choices: readonly string[]; takesFile: boolean }[];
  /** Possible values of its first argument, where they are known. */
  choices: readonly string[];
}

export function completionScript(program: Command, shell: Shell): string {
  const nodes = nodesOf(program, program.name());
  // Flags without a command belong to the default command.
  const start = nodes.find(({ path }) => path === `${program.name()} start`);
  const own = nodes[0]!.flags;
  for (const flag of start?.flags ?? []) {
    if (!own.some(({ word }) => word === flag.word)) own.push(flag);
  }
  switch (shell) {
    case 'bash':
      return bash(program.name(), nodes);
    case 'zsh':
      return zsh(program.name(), nodes);
    case 'fish':
      return fish(program.name(), nodes);
  }
}

function nodesOf(command: Command, path: string): Node[] {
  const help = command.createHelp();
  const children = help.visibleCommands(command);
  const node: Node = {
    path,
    children: children.map((child) => ({ word: child.name(), text: firstSentence(child) })),
    flags: help.visibleOptions(command).flatMap(flagOf),
    choices: command.registeredArguments[0]?.argChoices ?? [],
  };
  const below = command.commands.flatMap((child) => nodesOf(child, `${path} ${child.name()}`));
  return [node, ...below];
}

function flagOf(option: Option): Node['flags'] {
  if (option.long === undefined || option.long === null) return [];
  const takesFile = /<(file|path)>/.test(option.flags) || option.long === '--data-dir';
  const choices = option.argChoices ?? choicesIn(option.flags);
  return [{ word: option.long, text: option.description, choices, takesFile }];
}

/** A setting's flag tells its choices as `<off|on>`. */
function choicesIn(flags: string): readonly string[] {
  const [, argument] = /<([^>]*\|[^>]*)>/.exec(flags) ?? [];
  return argument?.split('|') ?? [];
}

function firstSentence(command: Command): string {
  return command.description().split('. ', 1)[0]!.replace(/\.$/, '');
}

// ---- bash

function bash(name: string, nodes: readonly Node[]): string {
  const lines = [
    `# Completion of ${name} for bash: source it, or keep it in`,
    `# ~/.local/share/bash-completion/completions/${name}`,
    `_${name}() {`,
    '  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}',
    `  local path=${quoted(name)} words='' i`,
    '  for ((i = 1; i < COMP_CWORD; i++)); do',
    '    case "$path ${COMP_WORDS[i]}" in',
    `      ${patterns(nodes)}) path="$path \${COMP_WORDS[i]}" ;;`,
    '    esac',
    '  done',
    '  case "$path $prev" in',
    ...withValues(nodes).map(({ path, word, choices }) =>
      choices.length > 0
        ? `    ${quoted(`${path} ${word}`)}) words=${quoted(choices.join(' '))} ;;`
        : `    ${quoted(`${path} ${word}`)}) COMPREPLY=($(compgen -f -- "$cur")); return ;;`,
    ),
    '    *)',
    '      case "$path" in',
    ...nodes.map(
      (node) => `        ${quoted(node.path)}) words=${quoted(wordsOf(node).join(' '))} ;;`,
    ),
    '      esac ;;',
    '  esac',
    '  COMPREPLY=($(compgen -W "$words" -- "$cur"))',
    '}',
    `complete -o default -F _${name} ${name}`,
  ];
  return `${lines.join('\n')}\n`;
}

// ---- zsh

function zsh(name: string, nodes: readonly Node[]): string {
  const lines = [
    `#compdef ${name}`,
    `# Completion of ${name} for zsh: keep it as _${name} in a folder of $fpath.`,
    `_${name}() {`,
    `  local path_=${quoted(name)} i`,
    '  local -a words_',
    '  for ((i = 2; i < CURRENT; i++)); do',
    '    case "$path_ ${words[i]}" in',
    `      ${patterns(nodes)}) path_="$path_ \${words[i]}" ;;`,
    '    esac',
    '  done',
    '  case "$path_ ${words[CURRENT-1]}" in',
    ...withValues(nodes).map(({ path, word, choices }) =>
      choices.length > 0
        ? `    ${quoted(`${path} ${word}`)}) compadd -- ${choices.map(quoted).join(' ')}; return ;;`
        : `    ${quoted(`${path} ${word}`)}) _files; return ;;`,
    ),
    '  esac',
    '  case "$path_" in',
    ...nodes.map((node) => {
      const described = [
        ...[...node.children, ...node.flags].map(({ word, text }) => `${escaped(word)}:${text}`),
        ...node.choices,
      ];
      return `    ${quoted(node.path)}) words_=(${described.map(quoted).join(' ')}) ;;`;
    }),
    '  esac',
    `  _describe ${quoted(name)} words_`,
    '}',
    // Loaded by $fpath it is run as the function it defines; sourced, it is made known.
    `if [ "$funcstack[1]" = _${name} ]; then _${name} "$@"; else compdef _${name} ${name}; fi`,
  ];
  return `${lines.join('\n')}\n`;
}

/** A colon separates a word from its description. */
function escaped(word: string): string {
  return word.replaceAll(':', '\\:');
}

// ---- fish

function fish(name: string, nodes: readonly Node[]): string {
  const lines = [
    `# Completion of ${name} for fish: keep it as ~/.config/fish/completions/${name}.fish`,
    `function __${name}_at`,
    `    set -l path ${name}`,
    '    for word in (commandline -opc)[2..-1]',
    '        switch "$path $word"',
    `            case ${nodes
      .slice(1)
      .map(({ path }) => fishQuoted(path))
      .join(' ')}`,
    '                set path "$path $word"',
    '        end',
    '    end',
    '    test "$path" = "$argv"',
    'end',
  ];
  for (const { path, children, flags, choices } of nodes) {
    const at = `complete -c ${name} -n ${fishQuoted(`__${name}_at ${path}`)}`;
    if (children.length > 0 || choices.length > 0) lines.push(`${at} -f`);
    for (const { word, text } of children) lines.push(`${at} -a ${word} -d ${fishQuoted(text)}`);
    for (const word of choices) lines.push(`${at} -a ${fishQuoted(word)}`);
    for (const flag of flags) {
      const value = flag.choices.length > 0 ? ` -x -a ${fishQuoted(flag.choices.join(' '))}` : '';
      const file = flag.takesFile ? ' -r -F' : '';
      lines.push(`${at} -l ${flag.word.slice(2)} -d ${fishQuoted(flag.text)}${value}${file}`);
    }
  }
  return `${lines.join('\n')}\n`;
}

// ---- shared helpers
//

function wordsOf({ children, flags, choices }: Node): string[] {
  return [...children.map(({ word }) => word), ...choices, ...flags.map(({ word }) => word)];
}

function withValues(nodes: readonly Node[]) {
  return nodes.flatMap(({ path, flags }) =>
    flags
      .filter(({ choices, takesFile }) => choices.length > 0 || takesFile)
      .map((flag) => ({ path, ...flag })),
  );
}

/** Paths of all commands but the first, as a pattern of `case`. */
function patterns(nodes: readonly Node[]): string {
  return nodes
    .slice(1)
    .map(({ path }) => quoted(path))
    .join('|');
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function fishQuoted(text: string): string {
  return `'${text.replaceAll(/['\\]/g, '\\$&')}'`;
}

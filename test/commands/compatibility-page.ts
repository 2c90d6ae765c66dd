// docs/redis-compatibility.md: every command of redis-server 7.0 beside this server, from what both answer.

import { differences, missingCommands } from '../../cli/docs/redis-differences.ts';
import type { RespClient } from '../support/resp-client.ts';
import { type RespValue, show } from '../support/resp-value.ts';

/** A command or subcommand as COMMAND tells of it. */
interface Told {
  /** `config|set` for a subcommand. */
  name: string;
  arity: number;
  /** First and last key, and step. */
  keys: string;
  isWrite: boolean;
  isContainer: boolean;
}

function itemsOf(value: RespValue | undefined): RespValue[] {
  return value !== undefined && 'items' in value ? value.items : [];
}

function textOf(value: RespValue | undefined): string {
  return value !== undefined && 'text' in value ? value.text : '';
}

function toldOf(value: RespValue): Told[] {
  const parts = itemsOf(value);
  const flags = itemsOf(parts[2]).map(textOf);
  const subcommands = itemsOf(parts[9]);
  const own: Told = {
    name: textOf(parts[0]).toLowerCase(),
    arity: Number(textOf(parts[1])),
    keys: [3, 4, 5].map((i) => textOf(parts[i])).join(' '),
    isWrite: flags.includes('write'),
    isContainer: subcommands.length > 0,
  };
  return [own, ...subcommands.flatMap(toldOf)];
}

async function allCommands(client: RespClient): Promise<Map<string, Told>> {
  const all = itemsOf(await client.command('COMMAND')).flatMap(toldOf);
  return new Map(all.map((one) => [one.name, one]));
}

/** Since when Redis has a command, and of which group it is. */
interface Origin {
  since: string;
  group: string;
}

async function origins(client: RespClient): Promise<Map<string, Origin>> {
  const found = new Map<string, Origin>();
  const take = (docs: RespValue | undefined): void => {
    const items = itemsOf(docs);
    for (let i = 0; i + 1 < items.length; i += 2) {
      const fields = itemsOf(items[i + 1]);
      const field = (name: string) => fields[fields.findIndex((one) => textOf(one) === name) + 1];
      found.set(textOf(items[i]).toLowerCase(), {
        since: textOf(field('since')),
        group: textOf(field('group')),
      });
      if (fields.some((one) => textOf(one) === 'subcommands')) take(field('subcommands'));
    }
  };
  take(await client.command('COMMAND', 'DOCS'));
  return found;
}

/** They end the connection or the server, change how it is spoken with, or wait. */
const notCalled =
  /^(shutdown|monitor|sync|psync|quit|reset|debug|failover|replicaof|slaveof|exec|multi|discard|(p|s)?(un)?subscribe|cluster\|.*|.*\|reset|save|bgsave|bgrewriteaof|flush.*|hello|info|lolwut|time|command.*|acl\|(list|getuser|users|genpass|whoami|log|cat)|client\|.*|config\|.*|memory\|.*|latency\|.*|slowlog\|.*|role|lastsave|randomkey|dbsize|script\|.*|function\|.*|module\|.*|object\|help|.*\|help|replconf|wait|restore-asking|.*-asking|asking|readonly|readwrite|pfselftest|pfdebug|keys|scan|auth|echo)$/;

/** The answer to the name alone. */
async function bareAnswer(client: RespClient, name: string): Promise<string> {
  return show(await client.command(...name.split('|')));
}

const shownName = (name: string): string => `\`${name.replace('|', ' ').toUpperCase()}\``;

function told(name: string): string[] {
  return differences.filter(({ commands }) => commands.includes(name)).map(({ text }) => text);
}

async function differencesOf(
  theirs: Told,
  ours: Told,
  clients: { redis: RespClient; polyrow: RespClient },
): Promise<string[]> {
  const found = told(theirs.name);
  if (theirs.isContainer || ours.isContainer) return found;
  if (theirs.arity !== ours.arity) {
    found.push(`COMMAND tells arity ${ours.arity}, not ${theirs.arity}`);
  }
  if (theirs.keys !== ours.keys && theirs.keys !== '0 0 0' && ours.keys !== '0 0 0') {
    found.push(`COMMAND tells keys ${ours.keys}, not ${theirs.keys}`);
  }
  if (theirs.isWrite !== ours.isWrite) {
    found.push(ours.isWrite ? 'counts as a write' : 'does not count as a write');
  }
  if (!notCalled.test(theirs.name)) {
    const expected = await bareAnswer(clients.redis, theirs.name);
    const answer = await bareAnswer(clients.polyrow, theirs.name);
    if (answer !== expected) found.push(`without arguments answers \`${answer}\``);
  }
  return found;
}

const begin = '<!-- by hand -->';
const end = '<!-- made by the test -->';

/** Hand-written parts of the existing page. */
function handWritten(page: string): string {
  const from = page.indexOf(begin);
  const to = page.indexOf(end);
  if (from < 0 || to < 0) return '\n';
  return page.slice(from + begin.length, to);
}

export async function compatibilityPage(
  redis: RespClient,
  polyrow: RespClient,
  before: string,
): Promise<string> {
  const theirs = await allCommands(redis);
  const ours = await allCommands(polyrow);
  const since = await origins(redis);
  const whyMissing = new Map(
    missingCommands.flatMap(({ what, commands }) =>
      commands.map((name) => [name.replace(' ', '|'), what]),
    ),
  );
  const rows: string[] = [];
  let supported = 0;
  let total = 0;
  for (const [name, command] of [...theirs].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const own = ours.get(name);
    const { since: from = '', group = '' } = since.get(name) ?? {};
    total++;
    if (own !== undefined) supported++;
    const container = name.split('|')[0]!;
    const notes =
      own === undefined
        ? [whyMissing.get(name) ?? whyMissing.get(container) ?? ''].filter((one) => one !== '')
        : await differencesOf(command, own, { redis, polyrow });
    const cells = [
      shownName(name),
      group,
      from,
      own === undefined ? 'no' : 'yes',
      notes.join('; ').replaceAll('|', '\\|'),
    ];
    rows.push(`| ${cells.join(' | ')} |`);
  }
  const more = [...ours.keys()].filter((name) => !theirs.has(name)).sort();
  return `# Redis compatibility, command by command

${begin}${handWritten(before)}${end}

## Commands

Of the ${total} commands and subcommands that redis-server 7.0 tells of by \`COMMAND\`, ${supported} are here. Both servers were asked for
them, and for their answers to a call without arguments where that is harmless. What differs otherwise is as in
[commands.md](commands.md).

| command | group | since | here | what differs |
| --- | --- | --- | --- | --- |
${rows.join('\n')}

Here, and not in Redis 7.0: ${more.map(shownName).join(', ')}.
`;
}

// Runs Redis commands as a client would write them, without a server:
//
//   const h = new Harness([...stringCommands, ...keysCommands]);
//   h.run('SET a "x y"')  ->  'OK'          h.run('GET a')  ->  '"x y"'          h.resp = 3
//
// A blocking command that finds nothing answers at once what it answers when its time is up.

import { Arguments } from '../../universal-row/arguments.ts';
import { assert } from '../../universal-row/assert.ts';
import { Action } from '../../universal-row/command.ts';
import { CommandError } from '../../universal-row/errors.ts';
import type { CommandSpec } from '../../access/redis/commands/spec.ts';
import { splitLine, TestReply } from './resp.ts';
import { StrictTables } from './strict-table.ts';
import { type Tables, TestRows } from './test-rows.ts';

export class Harness {
  readonly rows: TestRows;
  readonly #specs: readonly CommandSpec[];
  readonly #reply = new TestReply();
  #table = 0;

  constructor(specs: readonly CommandSpec[], tables: Tables = new StrictTables()) {
    this.rows = new TestRows(tables);
    this.#specs = specs;
  }

  /** 2 or 3. */
  set resp(version: number) {
    this.#reply.version = version;
  }

  /** Runs a line as redis-cli splits it, and answers in the form resp.ts describes. */
  run(line: string, sorted = false): string {
    return this.command(splitLine(line), sorted);
  }

  /** As `run`, of words as they are. `sorted` sorts the items of an answer. */
  command(words: readonly (Buffer | string)[], sorted = false): string {
    const args = toArguments(words);
    const name = args.text(0).toLowerCase();
    if (name === 'select') return this.#select(args);
    let spec = this.#specs.find((s) => s.name === name);
    if (spec === undefined) return `(error) ERR unknown command '${args.text(0)}'`;
    let title = spec.name;
    if (spec.subcommands !== undefined && args.count > 1) {
      const child = args.text(1).toLowerCase();
      const found = spec.subcommands.find((s) => s.name === child);
      if (found === undefined) {
        const help = `Try ${name.toUpperCase()} HELP.`;
        return `(error) ERR unknown subcommand '${args.text(1)}'. ${help}`;
      }
      title = `${name}|${child}`;
      spec = found;
    }
    const { arity } = spec;
    if (arity > 0 ? args.count !== arity : args.count < -arity) {
      return `(error) ERR wrong number of arguments for '${title}' command`;
    }
    return this.#execute(spec, args, sorted);
  }

  #execute(spec: CommandSpec, args: Arguments, sorted: boolean): string {
    assert(spec.run !== undefined, `${spec.name} has nothing to run`);
    this.rows.begin(this.#table);
    const reply = this.#reply;
    try {
      const long = spec.run(this.rows, args, reply);
      if (long !== undefined) {
        assert(!this.rows.wrote, `${spec.name} wrote before it turned out to be long`);
        reply.rollback(0);
        for (const _ of long(this.rows, args, reply));
      }
    } catch (e) {
      if (!(e instanceof CommandError)) throw e;
      assert(!this.rows.wrote, `${spec.name} wrote before it failed`);
      reply.rollback(0);
      reply.error(e.message);
    }
    this.rows.end();
    const readOnly = spec.action === Action.fetch || spec.action! >= Action.scan;
    assert(!readOnly || !this.rows.wrote, `${spec.name} reads only, but it wrote`);
    const answer = reply.take(sorted);
    if (answer !== undefined) return answer;
    assert(spec.blocks !== undefined && !this.rows.wrote, `${spec.name} did not answer`);
    reply[spec.blocks.onTimeout]();
    return reply.take(sorted)!;
  }

  #select(args: Arguments): string {
    this.#table = args.integer(1);
    return 'OK';
  }
}

/** The words in one buffer, not at its start, with other bytes between them. */
function toArguments(words: readonly (Buffer | string)[]): Arguments {
  const args = new Arguments();
  args.reserve(words.length);
  const parts: Buffer[] = [];
  let at = 0;
  for (const word of words) {
    const bytes = Buffer.isBuffer(word) ? word : Buffer.from(word);
    const head = Buffer.from(`$${bytes.length}\r\n`);
    args.starts[args.count] = at + head.length;
    args.lens[args.count++] = bytes.length;
    parts.push(head, bytes, Buffer.from('\r\n'));
    at += head.length + bytes.length + 2;
  }
  args.buf = Buffer.concat(parts);
  return args;
}

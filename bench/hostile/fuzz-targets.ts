// Parsers and executors of client input, each with a grammar of its input. In process, so the cost
// of an input is that of reading it.

import type { IncomingMessage } from 'node:http';
import { readCredentials } from '../../access/influx/http/credentials.ts';
import { HttpError } from '../../access/influx/http/http-error.ts';
import { multipartFields } from '../../access/influx/http/multipart.ts';
import { Parameters } from '../../access/influx/http/parameters.ts';
import { readQueryParams } from '../../access/influx/http/query-parameters.ts';
import { parseQuery } from '../../access/influx/influxql/parser/parser.ts';
import { PatternCompiler, PatternError } from '../../access/influx/influxql/parser/regexp.ts';
import { ParseError, QueryError } from '../../access/influx/influxql/result.ts';
import { LineParser } from '../../access/influx/line-protocol/line-parser.ts';
import { SharedSeriesCache } from '../../access/influx/line-protocol/series-cache-table.ts';
import { Permissions } from '../../access/redis/acl/acl-user.ts';
import { allCommands } from '../../access/redis/commands/all.ts';
import { shebangOf } from '../../universal-row/transforms/redis/scripts/script.ts';
import { Glob } from '../../universal-row/transforms/redis/glob.ts';
import { CommandRegistry } from '../../access/redis/commands/registry.ts';
import { defaultLimits, ProtocolError, RespParser } from '../../access/redis/resp-parser.ts';
import { Arguments } from '../../universal-row/arguments.ts';
import type { Rng } from '../../universal-row/environment.ts';
import { CommandError } from '../../universal-row/errors.ts';
import { emit } from '../../universal-row/scripting/emitter.ts';
import { LuaSyntaxError } from '../../universal-row/scripting/lexer.ts';
import { parse } from '../../universal-row/scripting/parser.ts';
import { commandText, runCommand } from './fuzz-commands.ts';
import * as texts from './fuzz-texts.ts';

export interface FuzzTarget {
  readonly name: string;
  /** A text of about this length. */
  make(rng: Rng, length: number): string;
  /** Reads it. An error of the protocol is an outcome; any other one is a finding. */
  read(text: string): void;
}

/** Errors that a client may receive; any other is a defect of the server. */
const told = [
  ...[CommandError, HttpError, LuaSyntaxError, ParseError, PatternError, ProtocolError, QueryError],
];

/** Runs a parser that may reject its input. */
function reading(read: (text: string) => void): (text: string) => void {
  return (text) => {
    try {
      read(text);
    } catch (error) {
      if (!told.some((kind) => error instanceof kind)) throw error;
    }
  };
}

const registry = new CommandRegistry(allCommands);
const cache = new SharedSeriesCache();
const pieceBytes = 1000;

function readLines(text: string): void {
  const parser = new LineParser(cache);
  parser.begin({ precision: '', now: 0 });
  const body = Buffer.from(text);
  for (let at = 0; at < body.length; at += pieceBytes) {
    parser.push(body.subarray(at, at + pieceBytes));
    while (parser.next() !== undefined);
  }
  parser.finish();
  while (parser.next() !== undefined);
}

function readCommands(text: string): void {
  const parser = new RespParser(defaultLimits);
  const args = new Arguments();
  const body = Buffer.from(text, 'latin1');
  for (let at = 0; at < body.length; at += pieceBytes) {
    const piece = body.subarray(at, at + pieceBytes);
    parser.push(piece, piece.length, args);
    while (parser.next(args)) registry.lookup(args);
    parser.detach(args);
  }
}

function readHead(text: string): void {
  const request = { headers: { authorization: text } } as unknown as IncomingMessage;
  readCredentials(request, new Parameters(''));
}

/** The first half of a text is searched for in the second. */
function halves(text: string): [string, string] {
  const middle = text.indexOf('\0');
  return [text.slice(0, middle), text.slice(middle + 1)];
}

function matchGlob(text: string): void {
  const [pattern, name] = halves(text);
  const bytes = Buffer.from(pattern);
  const glob = new Glob(bytes, 0, bytes.length);
  const named = Buffer.from(name);
  glob.matches(named, 0, named.length);
}

function matchRegex(text: string): void {
  const [pattern, value] = halves(text);
  new PatternCompiler().compile(pattern).regexp.test(value);
}

const noNames = { has: () => false, hasFunction: () => false, isLibrary: false };

/** As EVAL and FUNCTION LOAD compile it. */
function compileScript(text: string): void {
  shebangOf(text);
  const { main } = parse(text, '@fuzz');
  for (const isStepping of [false, true]) emit(main, '@fuzz', isStepping, noNames);
}

export const fuzzTargets: readonly FuzzTarget[] = [
  { name: 'Redis requests', make: texts.respText, read: reading(readCommands) },
  { name: 'Redis commands', make: commandText, read: reading(runCommand) },
  {
    name: 'glob patterns',
    make: (rng, length) =>
      `${texts.globText(rng, length >> 1)}\0${texts.nameText(rng, length >> 1)}`,
    read: reading(matchGlob),
  },
  {
    name: 'ACL rules',
    make: texts.rulesText,
    read: reading((text) => Permissions.parse(registry, text)),
  },
  { name: 'line protocol', make: texts.lineText, read: reading(readLines) },
  {
    name: 'InfluxQL',
    make: texts.queryText,
    read: reading((text) => parseQuery(text, { now: 0n, params: { p: 1 } })),
  },
  {
    name: 'regular expressions',
    make: (rng, length) => {
      // A pattern has a limit of its own; the text it is matched with has none.
      const pattern = texts.regexText(rng, Math.min(length >> 1, 400));
      return `${pattern}\0${texts.nameText(rng, length - pattern.length)}`;
    },
    read: reading(matchRegex),
  },
  { name: 'Lua scripts', make: texts.luaText, read: reading(compileScript) },
  { name: 'query parameters', make: texts.paramsText, read: reading((t) => readQueryParams(t)) },
  { name: 'forms', make: texts.formText, read: reading((text) => new Parameters(text)) },
  {
    name: 'multipart forms',
    make: (rng, length) =>
      `multipart/form-data; ${texts.headText(rng, length >> 3)}\0${texts.runs(rng, length, ['--x', '\r\n', '-', 'x', '\r\n--x\r\n', 'name="a"', '\r\n\r\n'])}`,
    read: reading((text) => {
      const [type, body] = halves(text);
      multipartFields(type, Buffer.from(body));
    }),
  },
  { name: 'HTTP heads', make: texts.headText, read: reading(readHead) },
];

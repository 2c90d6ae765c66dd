// FUNCTION LOAD, DELETE, FLUSH and RESTORE: they change the rows of libraries, and the compiled
// ones with them. They run on the tenant's table of libraries, whose rows are authoritative: the
// compiled ones are made from them at a start.

import type { Arguments } from '../../../arguments.ts';
import type { Transform } from '../../../command.ts';
import { Slice } from '../../../bytes.ts';
import { CommandError } from '../../../errors.ts';
import type { Row, Rows } from '../../../rows.ts';
import { Crc64 } from '../rdb/crc64.ts';
import { footerBytes, newestVersion, RdbType, writtenVersion } from '../rdb/format.ts';
import { ValueReader } from '../rdb/value-reader.ts';
import { ValueWriter } from '../rdb/value-writer.ts';
import { type FunctionLibraries, type FunctionLibrary, libraryName } from './functions.ts';

const flushOptions = new CommandError('ERR FUNCTION FLUSH only supports SYNC|ASYNC option');
const noLibrary = new CommandError('ERR Library not found');
const policyError = new CommandError(
  'ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.',
);
const payloadError = new CommandError('ERR DUMP payload version or checksum are wrong');
const notAFunction = new CommandError('ERR given type is not a function');
const unreadable = new CommandError('ERR failed loading the given functions payload');

/** RDB opcode before the code of a library. */
const libraryOpcode = 245;

function put(rows: Rows, library: FunctionLibrary): void {
  const name = Buffer.from(library.name, 'latin1');
  const code = Buffer.from(library.code, 'latin1');
  rows.putValue(name, 0, name.length, code, 0, code.length, 0);
}

function has(rows: Rows, name: string): boolean {
  const key = Buffer.from(name, 'latin1');
  return rows.find(key, 0, key.length) !== 0;
}

export function functionLoad(libraries: FunctionLibraries): Transform {
  return (rows, args, reply) => {
    let at = 2;
    let replaces = false;
    for (; at < args.count - 1; at++) {
      if (!args.is(at, 'REPLACE')) {
        throw new CommandError(`ERR Unknown option given: ${args.latin1(at, 128)}`);
      }
      replaces = true;
    }
    const library = libraries.compile(args.latin1(at));
    if (!replaces && has(rows, library.name)) throw alreadyThere(library);
    libraries.checkNames(library);
    put(rows, library);
    libraries.put(library);
    reply.text(library.name);
  };
}

function alreadyThere({ name }: FunctionLibrary): CommandError {
  return new CommandError(`ERR Library '${name}' already exists`);
}

export function functionDelete(libraries: FunctionLibraries): Transform {
  return (rows, args, reply) => {
    const row = rows.find(args.buf, args.starts[2]!, args.lens[2]!);
    if (row === 0) throw noLibrary;
    rows.drop(row);
    libraries.delete(args.latin1(2));
    reply.ok();
  };
}

export function functionFlush(libraries: FunctionLibraries): Transform {
  return (rows, args, reply) => {
    if (args.count > 3) throw wrongCount(args);
    if (args.count === 3 && !args.is(2, 'SYNC') && !args.is(2, 'ASYNC')) throw flushOptions;
    if (rows.rowCount() > 0) rows.clear();
    libraries.clear();
    reply.ok();
  };
}

function wrongCount(args: Arguments): CommandError {
  return new CommandError(
    `ERR unknown subcommand or wrong number of arguments for '${args.latin1(1)}'. Try FUNCTION HELP.`,
  );
}

type Policy = 'append' | 'replace' | 'flush';

function policyOf(args: Arguments): Policy {
  if (args.count > 4) {
    throw wrongCount(args);
  }
  if (args.count < 4 || args.is(3, 'APPEND')) return 'append';
  if (args.is(3, 'REPLACE')) return 'replace';
  if (args.is(3, 'FLUSH')) return 'flush';
  throw policyError;
}

export function functionRestore(libraries: FunctionLibraries): Transform {
  return (rows, args, reply) => {
    const policy = policyOf(args);
    const codes = librariesIn(args.bytes(2));
    const restored = new Map<string, FunctionLibrary>();
    const names = new Set<string>();
    for (const code of codes) {
      const library = libraries.compile(code);
      if (restored.has(library.name)) throw alreadyThere(library);
      for (const name of library.functions.keys()) {
        if (names.has(name)) throw new CommandError(`ERR Function ${name} already exists`);
        names.add(name);
      }
      restored.set(library.name, library);
    }
    for (const library of restored.values()) {
      if (policy === 'flush') continue;
      if (policy === 'append' && has(rows, library.name)) {
        throw new CommandError(`ERR Library ${library.name} already exists`);
      }
      libraries.checkNames(library, restored);
    }
    if (policy === 'flush') {
      if (rows.rowCount() > 0) rows.clear();
      libraries.clear();
    }
    for (const library of restored.values()) put(rows, library);
    // Old ones go first: functions may have moved from one library to another.
    for (const name of restored.keys()) libraries.delete(name);
    for (const library of restored.values()) libraries.put(library);
    reply.ok();
  };
}

/** The commands that change the libraries, by name. */
export const libraryChanges = {
  'function|delete': functionDelete,
  'function|flush': functionFlush,
  'function|load': functionLoad,
  'function|restore': functionRestore,
} as const;

/**
 * Transform of one of these commands on the libraries of a tenant. Its changes may be lost with its
 * log entry: then the libraries are reloaded from the rows.
 */
export function changing(
  change: (libraries: FunctionLibraries) => Transform,
  libraries: FunctionLibraries,
): Transform {
  const transform = change(libraries);
  return (rows, args, reply) => {
    libraries.need();
    transform(rows, args, reply);
    libraries.outdate();
  };
}

/** Answers with all rows of libraries, as FUNCTION DUMP does: how other nodes read them. */
export const dumpRows: Transform = (rows, _args, reply) => {
  const found: Row[] = [];
  let cursor = 0;
  do {
    cursor = rows.scan(cursor, rows.rowCount(), (row) => {
      found.push(row);
    });
  } while (cursor !== 0);
  const slice = new Slice();
  const payload = dumpOf(
    found.map((row) => {
      rows.value(row, slice);
      return { code: slice.b.toString('latin1', slice.s, slice.s + slice.n) };
    }),
  );
  reply.bulk(payload, 0, payload.length);
};

/** Code of each library in the answer of `dumpRows`, by its name. */
export function librariesByName(payload: Buffer): Map<string, string> {
  return new Map(librariesIn(payload).map((code) => [libraryName(code), code]));
}

/** The payload of FUNCTION DUMP. */
export function dumpOf(libraries: Iterable<Pick<FunctionLibrary, 'code'>>): Buffer {
  const writer = new ValueWriter();
  for (const { code } of libraries) {
    const bytes = Buffer.from(code, 'latin1');
    writer.byte(libraryOpcode);
    writer.string(bytes, 0, bytes.length);
  }
  writer.byte(writtenVersion);
  writer.byte(0);
  writer.reserve(8);
  const crc = new Crc64();
  crc.add(writer.buf, 0, writer.length);
  crc.write(writer.buf, writer.length);
  return writer.buf.subarray(0, writer.length + 8);
}

/** The code of each library in such a payload, a character for each byte. */
function librariesIn(given: Buffer): string[] {
  const end = given.length - footerBytes;
  if (end < 0 || given.readUInt16LE(end) > newestVersion) throw payloadError;
  const crc = new Crc64();
  crc.add(given, 0, given.length - 8);
  if (!crc.equals(given, given.length - 8)) throw payloadError;
  // A library is a string behind another byte than a string's.
  const payload = Buffer.from(given);
  const codes: string[] = [];
  for (let at = 0; at < end; ) {
    if (payload[at] !== libraryOpcode) throw notAFunction;
    payload[at] = RdbType.string;
    const reader = new ValueReader(payload, at, end - at);
    try {
      for (const _ of reader.elements());
    } catch (error) {
      throw error instanceof CommandError ? unreadable : error;
    }
    const { list } = reader;
    codes.push(list.count === 0 ? '' : list.buf.toString('latin1', 0, list.length(0)));
    at = reader.end;
  }
  return codes;
}

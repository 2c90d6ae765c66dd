// Function libraries of a plane's tenants. They are rows in tables of their own (library-tables.ts) in the pod of the
// default model, with compiled copies in memory. The compiled copies are made from the rows at a start, and when rows
// arrive by other ways than commands.

import {
  isLibraryTable,
  libraryTable,
  tenantOfLibraries,
} from '../../contracts/tenancy/library-tables.ts';
import { clearTable } from '../../storage-node/apply-slice.ts';
import type { Pod } from '../../storage-node/pod.ts';
import { Arguments } from '../../universal-row/arguments.ts';
import { Slice } from '../../universal-row/bytes.ts';
import { Action, type Transform } from '../../universal-row/command.ts';
import { CommandError, ReadFault } from '../../universal-row/errors.ts';
import type { RowCommands } from '../../universal-row/executor.ts';
import type { Row, Rows } from '../../universal-row/rows.ts';
import {
  dumpRows,
  librariesByName,
} from '../../universal-row/transforms/redis/scripts/function-commands.ts';
import { LongAnswer, RespWriter } from '../../access/redis/resp-writer.ts';

/** The compiled libraries of a tenant. */
interface Adopting {
  adopt(codes: ReadonlyMap<string, string>): { name: string; why: string }[];
}

interface PlaneLibrariesOptions {
  readonly pods: () => Iterable<Pod>;
  /** The pod in which libraries belong. */
  readonly home: () => Pod;
  /** By number; undefined for one that is gone. */
  readonly tenant: (number: number) => Adopting | undefined;
  /** Numbers of the tenants that may have compiled ones. */
  readonly tenants: () => Iterable<number>;
  readonly warn: (message: string, fields: object) => void;
}

type Codes = Map<string, string>;

export class PlaneLibraries {
  readonly #options: PlaneLibrariesOptions;

  constructor(options: PlaneLibrariesOptions) {
    this.#options = options;
  }

  /** Moves rows of libraries to their proper pod, and compiles the result. */
  async gather(): Promise<void> {
    const { pods, home: homeOf, tenant, tenants, warn } = this.#options;
    const home = homeOf();
    for (const pod of pods()) {
      if (pod === home) continue;
      for (const table of pod.heldTables().filter(isLibraryTable)) await move(pod, home, table);
    }
    const numbers = new Set(tenants());
    for (const table of home.heldTables()) {
      if (isLibraryTable(table)) numbers.add(tenantOfLibraries(table));
    }
    for (const number of numbers) {
      const failed = tenant(number)?.adopt(await read(home, libraryTable(number))) ?? [];
      for (const one of failed)
        warn('a function library cannot be loaded', { tenant: number, ...one });
    }
  }
}

/** The code of a tenant's libraries by name, from wherever the rows are. Rejects with a `CommandError`. */
export async function readLibraries(
  pods: RowCommands,
  tenant: number,
): Promise<ReadonlyMap<string, string>> {
  const table = libraryTable(tenant);
  const own = new RespWriter();
  const answer = await pods.execute(
    {
      ...{ action: Action.fetch, name: 'function|dump', transform: dumpRows, grows: false },
      ...{ table, tenant, span: { first: table, count: 1 }, args: words('FUNCTION', 'DUMP') },
    },
    own,
  );
  const bytes =
    answer instanceof LongAnswer
      ? Buffer.concat(answer.take().map((part) => Buffer.from(part)))
      : own.buf.subarray(0, own.pos);
  const end = bytes.indexOf('\r\n');
  // Not a bulk string: an error.
  if (bytes[0] !== 36) throw new CommandError(bytes.toString('latin1', 1, end));
  return librariesByName(bytes.subarray(end + 2, bytes.length - 2));
}

function words(...texts: string[]): Arguments {
  const args = new Arguments(texts.length);
  args.reserve(texts.length);
  args.buf = Buffer.from(texts.join(''));
  let at = 0;
  for (const [i, { length }] of texts.entries()) {
    args.starts[i] = at;
    args.lens[i] = length;
    at += length;
  }
  args.count = texts.length;
  return args;
}

/** Libraries that exist in both stay unchanged in their proper place. */
async function move(from: Pod, to: Pod, table: number): Promise<void> {
  const codes = await read(from, table);
  await run(to, table, (rows) => {
    for (const [name, code] of codes) {
      const key = Buffer.from(name, 'latin1');
      const value = Buffer.from(code, 'latin1');
      if (rows.find(key, 0, key.length) !== 0) continue;
      rows.putValue(key, 0, key.length, value, 0, value.length, 0);
    }
  });
  const position = to.endTick();
  if (position >= 0) await new Promise((resolve) => to.whenSettled(position, resolve));
  await clearTable(from, table);
}

/** Rows on disk are waited for. */
async function read(pod: Pod, table: number): Promise<Codes> {
  for (;;) {
    try {
      return readNow(pod, table);
    } catch (error) {
      if (!(error instanceof ReadFault)) throw error;
      await error.ready;
    }
  }
}

function readNow(pod: Pod, table: number): Codes {
  const { engine } = pod.parts;
  const codes: Codes = new Map();
  if (!engine.holds(table)) return codes;
  const rows = engine.table(table);
  const found: Row[] = [];
  let cursor = 0;
  do {
    cursor = rows.scan(cursor, 1000, (row) => {
      found.push(row);
    });
  } while (cursor !== 0);
  const slice = new Slice();
  const text = (): string => slice.b.toString('latin1', slice.s, slice.s + slice.n);
  for (const row of found) {
    rows.key(row, slice);
    const name = text();
    rows.value(row, slice);
    codes.set(name, text());
  }
  return codes;
}

async function run(pod: Pod, table: number, change: (rows: Rows) => void): Promise<void> {
  let failure = 'not run';
  const transform: Transform = (rows) => {
    change(rows);
    failure = '';
  };
  const reply = new RespWriter();
  await pod.execute(
    {
      action: Action.update,
      name: 'function',
      transform,
      grows: false,
      table,
      span: { first: table, count: 1 },
      args: new Arguments(),
    },
    reply,
  );
  if (failure !== '') throw new Error(reply.buf.toString('latin1', 0, reply.pos).trim());
}

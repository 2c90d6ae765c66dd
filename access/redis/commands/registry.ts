// All commands by name. Lookup works on the bytes of a request and makes no string.

import type { Arguments } from '../../../universal-row/arguments.ts';
import { Action, isWrite, type Transform } from '../../../universal-row/command.ts';
import { ChargeClass } from '../../../request-units/meter.ts';
import { LatencyHistogram } from '../latency.ts';
import { type Category, categoriesOf } from '../acl/categories.ts';
import { type Access, accessOf } from '../acl/key-access.ts';
import type { Blocking, ChannelRange, CommandSpec, Handler } from './spec.ts';

/** A command as the connection uses it: its row of the table, flattened, with its counters. */
export class CommandEntry {
  readonly spec: CommandSpec;
  /** `get`, or `config|get` for a subcommand. */
  readonly fullName: string;
  readonly nameBytes: Uint8Array;
  readonly arity: number;
  readonly action: Action;
  readonly run: Transform | undefined;
  readonly bind: CommandSpec['bind'];
  readonly handle: Handler | undefined;
  readonly handlesAlone: boolean;
  readonly blocks: Blocking | undefined;
  readonly grows: boolean;
  readonly immediate: boolean;
  readonly everyPod: boolean;
  readonly usesSpan: boolean;
  readonly ofLibraries: boolean;
  readonly usesLibraries: boolean;
  readonly noAuth: boolean;
  readonly allowedInMulti: boolean;
  readonly hidesCost: boolean;
  readonly chargeClass: ChargeClass;
  readonly serverWide: boolean;
  /** The command is subject to its tenant's quota. */
  readonly takesUnits: boolean;
  /** The command converts its arguments to strings, so long ones are refused. */
  readonly boundsWords: boolean;
  /** More words are refused. */
  readonly maxWords: number;
  readonly subcommands: ReadonlyMap<string, CommandEntry> | undefined;
  /** Small numbers from 0, for sets of commands. */
  id = 0;
  readonly categories: ReadonlySet<Category>;
  readonly hasKeys: boolean;
  readonly isAllowedInScripts: boolean;
  /** Access to the first key, and to those after it. */
  readonly keyAccess: readonly [first: Access, rest: Access];
  readonly channels: ChannelRange | undefined;
  /** The command does not count as a use of the keys it finds. */
  readonly isPeeking: boolean;

  calls = 0;
  readonly latencies = new LatencyHistogram();
  /** Milliseconds spent running it. */
  spentMs = 0;
  rejectedCalls = 0;
  failedCalls = 0;

  constructor(spec: CommandSpec, container?: CommandSpec) {
    this.spec = spec;
    this.fullName = container === undefined ? spec.name : `${container.name}|${spec.name}`;
    this.nameBytes = Buffer.from(spec.name.toUpperCase(), 'latin1');
    this.arity = spec.arity;
    this.action = spec.action ?? Action.fetch;
    this.bind = spec.bind;
    this.run = spec.run ?? (spec.bind && notBound);
    this.handle = spec.handle;
    this.handlesAlone = spec.handlesAlone === true;
    this.blocks = spec.blocks;
    this.grows = spec.flags.includes('denyoom');
    this.immediate = spec.immediate === true;
    this.everyPod = spec.everyPod === true;
    this.usesSpan = spec.usesSpan === true;
    this.ofLibraries = spec.ofLibraries === true;
    this.usesLibraries = spec.usesLibraries === true;
    this.noAuth = spec.flags.includes('no_auth');
    this.allowedInMulti = !spec.flags.includes('no_multi') && spec.mayNotQueue !== true;
    this.hidesCost = spec.hidesCost === true;
    this.chargeClass = chargeClassOf(this);
    this.takesUnits = this.run !== undefined || spec.takesUnits === true;
    this.boundsWords = this.run === undefined && spec.longWords !== true;
    const isBounded = this.run === undefined || spec.blocks !== undefined;
    this.maxWords = spec.maxWords ?? (isBounded ? maxHandlerWords : Infinity);
    this.serverWide = (spec.serverWide ?? container?.serverWide) === true;
    this.categories = new Set(categoriesOf(spec, container?.name));
    // Shard channels are routed as keys are, and are none.
    const hasWords = typeof spec.keys === 'function' || (spec.keys?.first ?? 0) > 0;
    this.hasKeys = hasWords && spec.group !== 'pubsub';
    this.isAllowedInScripts =
      spec.run !== undefined &&
      spec.bind === undefined &&
      !spec.flags.includes('noscript') &&
      !this.usesSpan &&
      !this.everyPod &&
      !this.hidesCost;
    this.keyAccess = accessOf(this);
    this.channels = spec.channels;
    this.isPeeking = container?.name === 'object' || peeking.has(this.fullName);
    this.subcommands =
      spec.subcommands === undefined
        ? undefined
        : new Map(spec.subcommands.map((sub) => [sub.name, new CommandEntry(sub, spec)]));
  }

  /** The subcommand that word 1 names. */
  subcommand(args: Arguments): CommandEntry | undefined {
    return args.lens[1]! > maxNameBytes
      ? undefined
      : this.subcommands?.get(args.text(1).toLowerCase());
  }

  /** Whether `count` words are as many as the command takes. */
  takes(count: number): boolean {
    return this.arity >= 0 ? count === this.arity : count >= -this.arity && count <= this.maxWords;
  }
}

const peeking = new Set([
  'exists',
  'type',
  'ttl',
  'pttl',
  'expiretime',
  'pexpiretime',
  'memory|usage',
]);

/** `bind` makes the transform of such a command. */
function notBound(): never {
  throw new TypeError('a command that is bound to its client was run without one');
}

function chargeClassOf({ run, action }: Pick<CommandEntry, 'run' | 'action'>): ChargeClass {
  if (run === undefined) return ChargeClass.other;
  if (isWrite(action)) return ChargeClass.write;
  return action === Action.fetch ? ChargeClass.read : ChargeClass.scan;
}

/**
 * Default limit of arguments. Commands that do not concern rows run in one step, and a blocking
 * command registers for all of its keys in one.
 */
export const maxHandlerWords = 1024;

const maxNameBytes = 32;

const buckets = 1024;

export class CommandRegistry {
  private readonly table: (CommandEntry[] | undefined)[] = Array.from({ length: buckets });
  private readonly byName = new Map<string, CommandEntry>();
  private readonly everyEntry: CommandEntry[] = [];
  private readonly categoryBits = new Map<Category, Uint32Array>();

  constructor(groups: readonly (readonly CommandSpec[])[]) {
    for (const group of groups) for (const spec of group) this.#add(new CommandEntry(spec));
  }

  #add(entry: CommandEntry): void {
    const { name } = entry.spec;
    if (this.byName.has(name)) throw new RangeError(`two commands are called ${name}`);
    this.byName.set(name, entry);
    for (const one of [entry, ...(entry.subcommands?.values() ?? [])]) {
      one.id = this.everyEntry.length;
      this.everyEntry.push(one);
    }
    const h = hashName(entry.nameBytes, 0, entry.nameBytes.length);
    (this.table[h] ??= []).push(entry);
  }

  /** The command that word 0 names, or undefined. Containers are returned as they are. */
  lookup(args: Arguments): CommandEntry | undefined {
    const { buf } = args;
    const s = args.starts[0]!;
    const n = args.lens[0]!;
    if (n > maxNameBytes) return undefined;
    const bucket = this.table[hashName(buf, s, n)];
    if (bucket === undefined) return undefined;
    for (let i = 0; i < bucket.length; i++) {
      const entry = bucket[i]!;
      if (sameName(entry.nameBytes, buf, s, n)) return entry;
    }
    return undefined;
  }

  get(name: string): CommandEntry | undefined {
    return this.byName.get(name.toLowerCase());
  }

  /** `get`, or `config|get`. */
  getFull(name: string): CommandEntry | undefined {
    const [container, sub, ...rest] = name.toLowerCase().split('|');
    const entry = rest.length > 0 ? undefined : this.byName.get(container!);
    return sub === undefined ? entry : entry?.subcommands?.get(sub);
  }

  all(): IterableIterator<CommandEntry> {
    return this.byName.values();
  }

  /** Commands and subcommands of a category: a bit for each id. */
  bitsOf(category: Category): Uint32Array {
    let bits = this.categoryBits.get(category);
    if (bits === undefined) {
      bits = new Uint32Array(Math.ceil(this.everyEntry.length / 32));
      for (const { id, categories } of this.everyEntry) {
        if (categories.has(category)) bits[id >>> 5]! |= 1 << (id & 31);
      }
      this.categoryBits.set(category, bits);
    }
    return bits;
  }

  /** Commands and subcommands, by ascending id. */
  entries(): readonly CommandEntry[] {
    return this.everyEntry;
  }

  /** Ids are below this. */
  get entryCount(): number {
    return this.everyEntry.length;
  }

  get size(): number {
    return this.byName.size;
  }
}

function hashName(b: Uint8Array, s: number, n: number): number {
  let h = n;
  // Folding letters to upper case this way maps a few other bytes together too: harmless here.
  for (let i = 0; i < n; i++) h = (Math.imul(h, 31) + (b[s + i]! & 0xdf)) | 0;
  return (h ^ (h >>> 10)) & (buckets - 1);
}

function sameName(name: Uint8Array, b: Uint8Array, s: number, n: number): boolean {
  if (name.length !== n) return false;
  for (let i = 0; i < n; i++) {
    let c = b[s + i]!;
    if (c >= 97 && c <= 122) c -= 32;
    if (c !== name[i]) return false;
  }
  return true;
}

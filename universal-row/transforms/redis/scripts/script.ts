// A script as it was sent: its program, its digest, and the flags of its first line.

import { createHash } from 'node:crypto';
import { CommandError } from '../../../errors.ts';
import { LuaSyntaxError } from '../../../scripting/lexer.ts';
import { Program } from '../../../scripting/program.ts';

export interface ScriptFlags {
  /** Whether the first line declares flags: without one a script may do anything. */
  readonly isDeclared: boolean;
  readonly noWrites: boolean;
  readonly allowOom: boolean;
  /** What it has written is undone where it fails. */
  readonly rollback: boolean;
}

const anything: ScriptFlags = {
  isDeclared: false,
  noWrites: false,
  allowOom: true,
  rollback: false,
};
/** Flags of scripts and functions: Redis's, and `rollback`. */
export const knownFlags: ReadonlySet<string> = new Set([
  'no-writes',
  'allow-oom',
  'allow-stale',
  'no-cluster',
  'allow-cross-slot-keys',
  'rollback',
]);

export class Script {
  /** Source as it was sent; one character for each byte. */
  readonly source: string;
  /** SHA-1 in lower-case hex. */
  readonly sha: string;
  readonly program: Program;
  readonly flags: ScriptFlags;
  /** Bytes that it takes in memory, about. */
  readonly bytes: number;
  /** SCRIPT LOAD has it stay. */
  isLoaded = false;
  /** Runs to begin in the stepping form, because a plain one was run again after it had written. */
  steppingRuns = 0;

  /** Throws `CommandError`. */
  constructor(source: string) {
    this.source = source;
    this.flags = flagsOf(source);
    this.bytes = 1024 + 24 * source.length;
    try {
      this.program = new Program(source, 'user_script');
    } catch (error) {
      if (!(error instanceof LuaSyntaxError)) throw error;
      throw new CommandError(`ERR Error compiling script (new function): ${error.message}`);
    }
    this.sha = sha1(source);
  }
}

export function sha1(text: string): string {
  return createHash('sha1').update(text, 'latin1').digest('hex');
}

/** The first line of a script, `#!engine name=value ...`; undefined when it is none. */
interface Shebang {
  readonly engine: string;
  readonly words: readonly string[];
}

/** Throws `CommandError`. */
export function shebangOf(source: string): Shebang | undefined {
  if (!source.startsWith('#!')) return undefined;
  const end = source.slice(0, maxShebangBytes).indexOf('\n');
  if (end < 0) throw new CommandError('ERR Invalid script shebang');
  const [engine = '', ...words] = source.slice(0, end).match(quotedWords) ?? [];
  return { engine: engine.slice(2), words: words.map(unquoted) };
}

/** Quotes that are not closed are looked for again from each of them. */
const maxShebangBytes = 1024;
/** Words, with or without parts in quotes. */
const quotedWords = /(?:"(?:\\.|[^"\\])*"|'(?:\\'|[^'])*'|[^\s"'])+/g;

function unquoted(word: string): string {
  return word.replace(
    /"((?:\\.|[^"\\])*)"|'((?:\\'|[^'])*)'/g,
    (_, double?: string, single?: string) => (double ?? single ?? '').replace(/\\(.)/g, '$1'),
  );
}

function flagsOf(source: string): ScriptFlags {
  const shebang = shebangOf(source);
  if (shebang === undefined) return anything;
  if (shebang.engine !== 'lua') {
    throw new CommandError(`ERR Unexpected engine in script shebang: #!${shebang.engine}`);
  }
  const flags = new Set<string>();
  for (const word of shebang.words) {
    if (!word.startsWith('flags=')) {
      throw new CommandError(`ERR Unknown lua shebang option: ${word.split('=', 1)[0]}`);
    }
    const value = word.slice('flags='.length);
    for (const flag of value.split(',').filter((one) => one !== '')) {
      if (!knownFlags.has(flag)) {
        throw new CommandError(`ERR Unexpected flag in script shebang: ${flag}`);
      }
      flags.add(flag);
    }
  }
  return {
    isDeclared: true,
    noWrites: flags.has('no-writes'),
    allowOom: flags.has('allow-oom') || flags.has('no-writes'),
    rollback: flags.has('rollback'),
  };
}

/** Bytes of scripts that one tenant may have. */
const maxCacheBytes = 64 * 1024 * 1024;

/** The scripts of a tenant. Those sent with EVAL go when there are too many, the oldest first. */
export class ScriptCache {
  bytes = 0;
  readonly #byText = new Map<string, Script>();
  readonly #bySha = new Map<string, Script>();

  get count(): number {
    return this.#bySha.size;
  }

  bySha(sha: string): Script | undefined {
    return this.#bySha.get(sha) ?? this.#bySha.get(sha.toLowerCase());
  }

  /** Scripts loaded by SCRIPT LOAD. */
  *loaded(): Generator<Script> {
    for (const script of this.#bySha.values()) if (script.isLoaded) yield script;
  }

  /** The script of this text; throws `CommandError`. */
  take(source: string): Script {
    const known = this.#byText.get(source);
    if (known !== undefined) return known;
    const script = new Script(source);
    this.#makeRoom(script.bytes);
    this.#byText.set(source, script);
    this.#bySha.set(script.sha, script);
    this.bytes += script.bytes;
    return script;
  }

  #makeRoom(bytes: number): void {
    if (this.bytes + bytes <= maxCacheBytes) return;
    for (const [source, script] of this.#byText) {
      if (script.isLoaded) continue;
      this.#byText.delete(source);
      this.#bySha.delete(script.sha);
      this.bytes -= script.bytes;
      if (this.bytes + bytes <= maxCacheBytes / 2) return;
    }
    if (this.bytes + bytes > maxCacheBytes) {
      throw new CommandError('OOM the scripts of this tenant take too much memory: SCRIPT FLUSH');
    }
  }

  flush(): void {
    this.#byText.clear();
    this.#bySha.clear();
    this.bytes = 0;
  }
}

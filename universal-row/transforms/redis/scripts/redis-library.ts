// The table `redis` of scripts.

import { createHash } from 'node:crypto';
import { protect } from '../../../scripting/environment.ts';
import { libraryTable } from '../../../scripting/lib/math.ts';
import { eachPiece } from '../../../scripting/lib/string.ts';
import { checkString } from '../../../scripting/lib/checks.ts';
import type { Machine } from '../../../scripting/machine.ts';
import { type Callable, LuaError, LuaTable, type Value } from '../../../scripting/values.ts';
import { type CallResult, tableOf } from './reply-values.ts';
import type { ScriptRun } from './script-run.ts';

/** The run that is under way in an environment. */
export interface CurrentRun {
  run: ScriptRun | undefined;
}

const version = '7.0.15';
const versionNumber = 0x0007000f;

function answered(result: CallResult, raises: boolean): Value {
  const { failure } = result;
  if (failure === undefined)
    return result.status === undefined ? result.value : tableOf('ok', result.status);
  const table = tableOf('err', failure);
  if (!raises) {
    table.set('ignore_error_stats_update', true);
    return table;
  }
  throw new LuaError(table);
}

/** The run that a function of this name is called in: there is none while a library is loaded. */
function running({ run }: CurrentRun, name: string): ScriptRun {
  if (run !== undefined) return run;
  throw new LuaError(`Script attempted to access nonexistent global variable '${name}'`);
}

function calls(m: Machine, current: CurrentRun): Record<string, Callable> {
  const plain =
    (raises: boolean): Callable =>
    (...words) =>
      answered(running(current, 'call').call(words), raises);
  const later =
    (raises: boolean): Callable =>
    (...words) => {
      function* steps(): Generator {
        return answered(yield* running(current, 'call').callInSteps(words), raises);
      }
      return steps();
    };
  const made = m.isStepping ? later : plain;
  return { call: made(true), pcall: made(false) };
}

/** An error of redis's own functions. */
export function failure(text: string): LuaError {
  return new LuaError(tableOf('err', text));
}

/** `{err=...}` or `{ok=...}` from a text. */
function replyTable(key: 'err' | 'ok'): Callable {
  return (...args) => {
    const [text] = args;
    if (args.length !== 1 || typeof text !== 'string') {
      return tableOf('err', 'ERR wrong number or type of arguments');
    }
    if (key === 'ok') return tableOf('ok', text);
    // A text without a code gets one; a leading dash is the protocol's.
    const line = text.replace(/^-/, '');
    return tableOf('err', /^\S+ /.test(line) || text.startsWith('-') ? line : `ERR ${line}`);
  };
}

function settings(m: Machine, current: CurrentRun): Record<string, Callable> {
  return {
    setresp: (...args) => {
      if (args.length !== 1) throw failure('ERR redis.setresp() requires one argument.');
      const protocol = m.toNumber(args[0]);
      if (protocol !== 2 && protocol !== 3) throw failure('ERR RESP version must be 2 or 3.');
      running(current, 'setresp').answers.version = protocol;
      return [];
    },
    set_repl: (...args) => {
      running(current, 'set_repl');
      if (args.length !== 1) throw failure('ERR redis.set_repl() requires one argument.');
      const flags = m.toNumber(args[0]) ?? 0;
      if ((flags & ~3) !== 0) {
        throw failure(
          'ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.',
        );
      }
      return [];
    },
    replicate_commands: () => true,
    breakpoint: () => false,
    debug: () => [],
  };
}

function logging(m: Machine, current: CurrentRun): Record<string, Value> {
  return {
    LOG_DEBUG: 0,
    LOG_VERBOSE: 1,
    LOG_NOTICE: 2,
    LOG_WARNING: 3,
    log: (...args: Value[]) => {
      if (args.length < 2) throw failure('ERR redis.log() requires two arguments or more.');
      const [level, ...words] = args;
      const number = m.toNumber(level);
      if (number === undefined) {
        throw failure('ERR First argument must be a number (log level).');
      }
      if (number < 0 || number > 3) throw failure('ERR Invalid log level.');
      const parts = words.filter((word) => typeof word === 'string' || typeof word === 'number');
      current.run?.host.log(number, parts.join(' '));
      return [];
    },
  };
}

const versions = { REDIS_VERSION: version, REDIS_VERSION_NUM: versionNumber };

function tools(m: Machine, current: CurrentRun): Record<string, Callable> {
  return {
    sha1hex: m.stepping(function* (...args) {
      if (args.length !== 1) throw failure('ERR wrong number of arguments');
      const text = checkString(m, args[0], 1, 'sha1hex');
      m.charge(200);
      const hash = createHash('sha1');
      yield* eachPiece(m, text, (piece) => hash.update(piece, 'latin1'));
      return hash.digest('hex');
    }),
    acl_check_cmd: (...args) => {
      if (args.length === 0) {
        throw failure(
          'ERR Please specify at least one argument for this redis.acl_check_cmd() call',
        );
      }
      const allowed = running(current, 'acl_check_cmd').isAllowed(args);
      if (allowed === undefined) {
        throw failure('ERR Invalid command passed to redis.acl_check_cmd()');
      }
      return allowed;
    },
  };
}

/** `redis`, with further functions. */
export function redisLibrary(
  m: Machine,
  current: CurrentRun,
  more: Record<string, Callable> = {},
): LuaTable {
  return libraryTable({
    ...calls(m, current),
    ...settings(m, current),
    ...tools(m, current),
    error_reply: replyTable('err'),
    status_reply: replyTable('ok'),
    ...logging(m, current),
    REPL_NONE: 0,
    REPL_AOF: 1,
    REPL_SLAVE: 2,
    REPL_REPLICA: 2,
    REPL_ALL: 3,
    ...versions,
    ...more,
  });
}

/** `redis` as a library has it while it is loaded. */
export function loadingLibrary(
  m: Machine,
  current: CurrentRun,
  more: Record<string, Callable>,
): LuaTable {
  const table = libraryTable({ ...logging(m, current), ...versions, ...more });
  protect(m, table);
  return table;
}

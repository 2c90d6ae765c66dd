// Keyspace events of a command's changes to a row, as redis-server names them. They are derived
// from the command's name and the change of the row, so that commands contain no code for events.

import type { Arguments } from '../../universal-row/arguments.ts';
import { Change, type ChangedBy, type RowChange } from '../../universal-row/row-change.ts';

/** The classes of `notify-keyspace-events`, and K and E for the two kinds of channels. */
const eventClasses = 'KEg$lshzxetdmn';
/** Classes that `A` stands for. */
const ordinaryClasses = 'g$lshzxetd';

export type EventClass = 'g' | '$' | 'l' | 's' | 'h' | 'z' | 'x' | 'e' | 't' | 'm' | 'n';

/** The letters of the setting as a set, in Redis's order; undefined if there is another one among them. */
export function parseEventClasses(text: string): string | undefined {
  const letters = new Set(text.replaceAll('A', ordinaryClasses));
  for (const letter of letters) if (!eventClasses.includes(letter)) return undefined;
  return eventClasses
    .split('')
    .filter((letter) => letters.has(letter))
    .join('');
}

/** As redis-server shows them. */
export function showEventClasses(letters: string): string {
  const has = (letter: string): boolean => letters.includes(letter);
  const all = ordinaryClasses.split('').every(has);
  const shown = all ? 'A' : ordinaryClasses.split('').filter(has).join('');
  return shown + 'KEmn'.split('').filter(has).join('');
}

interface Events {
  class: EventClass;
  name: string;
  /** Whether the event is also sent, before `del`, when the command removes the row. */
  whenGone: boolean;
}

const table = new Map<string, Events>();

/** `command`, or `command=event` where they differ. */
function add(letter: EventClass, whenGone: boolean, words: string): void {
  for (const word of words.split(' ')) {
    const [command, name = command!] = word.split('=');
    table.set(command!, { class: letter, name, whenGone });
  }
}

add(
  '$',
  false,
  'set setnx=set mset=set msetnx=set getset=set setex=set psetex=set append setrange',
);
add('$', false, 'incr=incrby decr=incrby incrby decrby=incrby incrbyfloat bitop=set');
add('$', false, 'setbit bitfield=setbit pfadd pfmerge=pfadd');
add('l', true, 'lpush lpushx=lpush rpush rpushx=rpush lpop rpop blpop=lpop brpop=rpop');
add('l', true, 'linsert lset lrem ltrim');
add('l', false, 'sort=sortstore');
add('s', true, 'sadd srem spop');
add('s', false, 'sinterstore sunionstore sdiffstore');
add('h', true, 'hset hmset=hset hsetnx=hset hincrby hincrbyfloat hdel hgetdel=hdel');
add('h', true, 'hexpire hpexpire=hexpire hexpireat=hexpire hpexpireat=hexpire hpersist');
add('h', true, 'hsetex=hset hgetex=hexpire');
add('z', true, 'zadd zincrby=zincr geoadd=zadd zrem zpopmin zpopmax bzpopmin=zpopmin');
add('z', true, 'bzpopmax=zpopmax zremrangebyscore zremrangebyrank zremrangebylex');
add('z', false, 'zunionstore zinterstore zdiffstore zrangestore geosearchstore');
add('z', false, 'georadius=georadiusstore georadiusbymember=georadiusstore');
add('t', true, 'xadd xdel xtrim xsetid');
add('g', false, 'expire pexpire=expire expireat=expire pexpireat=expire persist');
add('g', false, 'copy=copy_to restore');

export const listMoves: ReadonlySet<string> = new Set([
  'lmove',
  'blmove',
  'rpoplpush',
  'brpoplpush',
]);
/** Commands without an event of their own: the change of the row determines the events. */
const silent = new Set(['del', 'unlink', 'getdel', 'getex', 'rename', 'renamenx', 'move']);
silent.add('xreadgroup').add('xclaim').add('xautoclaim').add('xack');
const withExpire = new Set(['set', 'setex', 'psetex', 'getex']);
/** Commands that store a whole row at a key, so the row always counts as new. */
const placing = new Set(['copy', 'restore', 'rename', 'renamenx', 'move']);

/** Arguments that a command's events depend on, besides its name. */
const details: Readonly<Record<string, (args: Arguments) => string>> = {
  lmove: (args) => moveDetail(args, args.is(3, 'LEFT'), args.is(4, 'LEFT')),
  blmove: (args) => moveDetail(args, args.is(3, 'LEFT'), args.is(4, 'LEFT')),
  rpoplpush: (args) => moveDetail(args, false, true),
  brpoplpush: (args) => moveDetail(args, false, true),
  smove: (args) => args.latin1(1),
  lmpop: (args) => popDetail(args, 1, 'LEFT', 'lpop', 'rpop'),
  blmpop: (args) => popDetail(args, 2, 'LEFT', 'lpop', 'rpop'),
  zmpop: (args) => popDetail(args, 1, 'MIN', 'zpopmin', 'zpopmax'),
  bzmpop: (args) => popDetail(args, 2, 'MIN', 'zpopmin', 'zpopmax'),
  zadd: (args) => (hasWord(args, 2, 'INCR') ? 'incr' : ''),
  set: (args) => (hasWord(args, 3, 'KEEPTTL') ? 'keepttl' : ''),
  xgroup: (args) => args.latin1(1, 32).toLowerCase(),
};

function moveDetail(args: Arguments, fromHead: boolean, toHead: boolean): string {
  const isRotation = args.latin1(1) === args.latin1(2);
  return `${fromHead ? 'l' : 'r'}${toHead ? 'l' : 'r'}${isRotation ? '=' : ' '}${args.latin1(1)}`;
}

function popDetail(args: Arguments, at: number, word: string, yes: string, no: string): string {
  return args.is(at + args.integerOrNaN(at) + 1, word) ? yes : no;
}

/** Options end where a score or value begins, at the latest after a few words. */
function hasWord(args: Arguments, from: number, word: string): boolean {
  for (let i = from; i < Math.min(args.count, from + 6); i++) if (args.is(i, word)) return true;
  return false;
}

/** The command as `eventsOf` needs it. */
export function describeCommand(args: Arguments, client: number): ChangedBy {
  const name = args.latin1(0, 32).toLowerCase();
  return { name, detail: Object.hasOwn(details, name) ? details[name]!(args) : '', client };
}

export type Tell = (letter: EventClass, event: string) => void;

/** Reports the events of one command on one key. `changes` are the changes of the command, in order. */
export function eventsOf(changes: readonly RowChange[], tell: Tell): void {
  let sum = 0;
  let last = 0;
  let isNew: boolean | undefined;
  for (const { change } of changes) {
    if (change === Change.missed) tell('m', 'keymiss');
    else if (change & Change.expired) tell('x', 'expired');
    else if (change & Change.evicted) tell('e', 'evicted');
    else {
      isNew ??= (change & Change.created) !== 0;
      sum |= change;
      last = change;
    }
    if (change & Change.expired) isNew = undefined;
  }
  const { by } = changes[0]!;
  if (sum === 0 || by === undefined) return;
  const { name } = by;
  const isGone = (last & (Change.dropped | Change.emptied | Change.renamedFrom)) !== 0;
  if (placing.has(name)) isNew = !isGone;
  if (isNew === true) tell('n', 'new');
  ownEvents(by, changes[0]!.key, sum, isGone, tell);
  const isSet = withExpire.has(name) && by.detail !== 'keepttl';
  if (!isGone && isSet && sum & Change.expirySet) tell('g', 'expire');
  if (isGone && !(last & Change.renamedFrom) && name !== 'move') tell('g', 'del');
}

function ownEvents(by: ChangedBy, key: Buffer, sum: number, isGone: boolean, tell: Tell): void {
  const { name, detail } = by;
  if (sum & Change.renamedFrom) tell('g', 'rename_from');
  if (sum & Change.renamedTo) tell('g', 'rename_to');
  if (name === 'getex' && sum & Change.expiryCleared && !isGone) tell('g', 'persist');
  if (name === 'move') tell('g', isGone ? 'move_from' : 'move_to');
  if (sum & Change.consumerMade && name !== 'xgroup') tell('t', 'xgroup-createconsumer');
  if (silent.has(name)) return;
  if (listMoves.has(name)) {
    moved(detail, key, isGone, tell);
    return;
  }
  switch (name) {
    case 'smove':
      if (detail === key.toString('latin1')) tell('s', 'srem');
      else tell('s', 'sadd');
      return;
    case 'lmpop':
    case 'blmpop':
      tell('l', detail);
      return;
    case 'zmpop':
    case 'bzmpop':
      tell('z', detail);
      return;
    case 'zadd':
      tell('z', detail === 'incr' ? 'zincr' : 'zadd');
      return;
    case 'xgroup':
      tell('t', `xgroup-${detail}`);
      return;
  }
  const events = table.get(name);
  if (events !== undefined && (!isGone || events.whenGone)) tell(events.class, events.name);
  if (name === 'xadd' && sum & Change.trimmed) tell('t', 'xtrim');
}

function moved(detail: string, key: Buffer, isGone: boolean, tell: Tell): void {
  const isSource = detail.slice(3) === key.toString('latin1');
  const isTarget = !isSource || detail[2] === '=';
  if (isTarget && !isGone) tell('l', `${detail[1]!}push`);
  if (isSource) tell('l', `${detail[0]!}pop`);
}

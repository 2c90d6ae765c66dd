// The flows of all commands, as data. The pod runs the fused tasks in one pass over plain code
// (`Pod.execute`): this describes the order of that code, and the places for further tasks. A step
// added or moved there must be changed here too.

import { Action } from '../../universal-row/command.ts';
import type { TaskPlace } from './flow.ts';

interface StandardTask extends TaskPlace {
  readonly does: string;
  /** The pod does it in one go with its neighbours, so nothing can come in between. */
  readonly fused: boolean;
}

const decode: StandardTask = {
  name: 'decode',
  after: [],
  does: 'The connection finds the words of the command, its transform and its table.',
  fused: false,
};
const admit: StandardTask = {
  name: 'admit',
  after: ['decode'],
  does: 'Refuses a write to a read-only table, to a full disk, or beyond the memory limit.',
  fused: true,
};
const read: StandardTask = {
  name: 'read',
  after: ['admit'],
  does: 'Finds rows in the engine; expired ones are hidden. From disk: the command begins again.',
  fused: true,
};
const translate: StandardTask = {
  name: 'translate',
  after: ['read'],
  does: 'The transform turns rows and words into an answer, and into writes to rows.',
  fused: true,
};
const encode: StandardTask = {
  name: 'encode',
  after: ['translate'],
  does: "Each write becomes a record in the log's open entry.",
  fused: true,
};
const apply: StandardTask = {
  name: 'apply',
  after: ['encode'],
  does: 'The engine takes each write on.',
  fused: true,
};
const log: StandardTask = {
  name: 'log',
  after: ['apply'],
  does: 'The entry is closed and has its index; it is written when the tick ends.',
  fused: true,
};

function reply(after: string): StandardTask {
  return {
    name: 'reply',
    after: [after],
    does: 'The answer stands; it leaves when the tick ends and the log is as safe as asked.',
    fused: false,
  };
}

const readFlow: readonly StandardTask[] = [decode, admit, read, translate, reply('translate')];

const writeFlow: readonly StandardTask[] = [
  decode,
  admit,
  read,
  translate,
  encode,
  apply,
  log,
  reply('log'),
];

export type StandardFlows = Readonly<Record<Action, readonly StandardTask[]>>;

export const standardFlows: StandardFlows = {
  [Action.fetch]: readFlow,
  [Action.update]: writeFlow,
  [Action.put]: writeFlow,
  [Action.delete]: writeFlow,
  [Action.scan]: readFlow,
  [Action.query]: readFlow,
};

// Decodes a gateway's request: the transform that it names, on the table of its lane unless it
// names another one.

import { clientOfNode, type Command } from '../../universal-row/command.ts';
import { CommandFlag, type CommandHead } from '../../universal-row/protocol/row-messages.ts';
import { WireError } from '../../universal-row/protocol/wire.ts';
import { namedTransforms } from '../../universal-row/transforms/redis/registry.ts';
import type { Lane } from './lane.ts';
import type { PodTicks } from './served-pods.ts';

/** Throws `WireError` where there is no such transform. */
export function fillCommand(
  command: Command,
  lane: Lane,
  head: CommandHead,
  ticks: PodTicks,
  gateway: number,
): void {
  command.table = head.flags & CommandFlag.hasTable ? head.table : lane.session.table;
  command.client =
    head.flags & CommandFlag.hasClient ? clientOfNode(gateway, head.client) : undefined;
  const named = namedTransforms[head.transform];
  if (named === undefined) {
    fillScript(command, lane, head, ticks);
    return;
  }
  command.action = named.action;
  command.name = named.name;
  command.transform = named.run;
  command.grows = named.grows;
  command.usesSpan = named.usesSpan;
}

function fillScript(command: Command, lane: Lane, head: CommandHead, ticks: PodTicks): void {
  const { scripts, options } = ticks;
  const { table } = command;
  const { flags, rights } = head;
  const number = head.transform - namedTransforms.length;
  const script = scripts.transform(number, lane.session.tenant, {
    command,
    rights: flags & CommandFlag.hasRights ? rights : '',
    refusal: (grows) => options.podOf(table)?.executor.refusal({ table, grows }),
    mayPublish: options.publish !== undefined,
  });
  if (script === undefined) throw new WireError('no transform has this number');
  lane.scripts.push(script.host);
  command.action = script.action;
  command.name = script.name;
  command.transform = script.run;
  command.grows = script.grows;
  command.usesSpan = false;
}

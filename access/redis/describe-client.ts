// A client as CLIENT LIST and CLIENT INFO show it, in one line.

import type { CommandEntry } from './commands/registry.ts';
import { type Client, ClientFlag } from './client.ts';
import { wideIdOf } from './wide-id.ts';
import type { ClientType } from './wide-questions.ts';

export function typeOf(connection: Client): ClientType {
  return connection.flags & ClientFlag.subscribed ? 'pubsub' : 'normal';
}

/** The client that is notified of changed keys instead; 0 for none, -1 while it is notified of no changes. */
export function redirectOf({ tracking, server }: Client): number {
  const { redirect } = tracking ?? { redirect: -1 };
  return redirect > 0 ? wideIdOf({ id: redirect, server }) : redirect;
}

/** `running` is the current command, where that is not yet the last command. */
export function describeClient(connection: Client, running?: CommandEntry): string {
  const { server } = connection;
  const now = server.now;
  let flags = '';
  if (connection.flags & ClientFlag.monitor) flags += 'O';
  if (connection.flags & ClientFlag.subscribed) flags += 'P';
  if (connection.transaction !== undefined) flags += 'x';
  if (connection.isBlocked) flags += 'b';
  if (connection.noEvict) flags += 'e';
  if (connection.noTouch) flags += 'T';
  const { tracking } = connection;
  if (tracking !== undefined) flags += 't';
  if (tracking?.isBroken === true) flags += 'R';
  if (tracking?.isBroadcast === true) flags += 'B';
  const { transaction } = connection;
  const waiting = connection.unsentBytes;
  const input = connection.queryBytes + (running === undefined ? 0 : connection.commandBytes);
  // Redis's fields in its order, then ours.
  const since = connection.unitsWaitSince;
  const unitsWait =
    since === undefined ? '' : ` ru-wait-ms=${Math.round(performance.now() - since)}`;
  return `id=${wideIdOf(connection)} addr=${connection.address} laddr=${connection.localAddress} fd=${connection.id} name=${connection.name} age=${Math.floor((now - connection.createdAt) / 1000)} idle=${Math.floor((now - connection.lastActiveAt) / 1000)} flags=${flags === '' ? 'N' : flags} db=${connection.db} sub=${connection.channels.size} psub=${connection.patterns.size} ssub=${connection.shardChannels.size} multi=${transaction === undefined ? -1 : transaction.queue.length} qbuf=${input} qbuf-free=0 argv-mem=${running === undefined ? 0 : connection.wordBytes} multi-mem=${transaction?.bytes ?? 0} rbs=0 rbp=0 obl=0 oll=0 omem=${waiting} tot-mem=${waiting + input + (transaction?.bytes ?? 0)} events=${waiting === 0 ? 'r' : 'rw'} cmd=${running?.fullName ?? connection.lastCommand} user=${connection.user} redir=${redirectOf(connection)} resp=${connection.version} lib-name=${connection.libName} lib-ver=${connection.libVersion} watch=${connection.watchedKeys}${unitsWait}`;
}

// A client as CLIENT LIST and CLIENT INFO show it, in one line.

import type { CommandEntry } from './commands/registry.ts';
import { type Connection, Special } from './connection.ts';

export type ClientType = 'normal' | 'pubsub' | 'master' | 'replica';

export function typeOf(connection: Connection): ClientType {
  return connection.special & Special.subscribed ? 'pubsub' : 'normal';
}

/** `running` is what it runs just now, where that is not yet its last command. */
export function describeClient(connection: Connection, running?: CommandEntry): string {
  const { server, socket } = connection;
  const now = server.now;
  let flags = '';
  if (connection.special & Special.monitor) flags += 'O';
  if (connection.special & Special.subscribed) flags += 'P';
  if (connection.transaction !== undefined) flags += 'x';
  if (connection.wait !== undefined) flags += 'b';
  if (connection.noEvict) flags += 'e';
  if (connection.noTouch) flags += 'T';
  const fields: [string, string | number][] = [
    ['id', connection.id],
    ['addr', connection.address],
    ['laddr', connection.localAddress],
    ['fd', connection.id],
    ['name', connection.name],
    ['age', Math.floor((now - connection.createdAt) / 1000)],
    ['idle', Math.floor((now - connection.lastActiveAt) / 1000)],
    ['flags', flags === '' ? 'N' : flags],
    ['db', connection.db],
    ['sub', connection.channels.size],
    ['psub', connection.patterns.size],
    ['ssub', connection.shardChannels.size],
    ['multi', connection.transaction === undefined ? -1 : connection.transaction.queue.length],
    ['watch', connection.watch === undefined ? 0 : connection.watch.keys.size],
    ['qbuf', connection.queryBytes],
    ['qbuf-free', 0],
    ['argv-mem', 0],
    ['multi-mem', 0],
    ['rbs', 0],
    ['rbp', 0],
    ['obl', 0],
    ['oll', 0],
    ['omem', socket.writableLength],
    ['tot-mem', socket.writableLength + connection.queryBytes],
    ['events', 'r'],
    ['cmd', running?.fullName ?? connection.lastCommand],
    ['user', connection.user],
    ['redir', -1],
    ['resp', connection.version],
    ['lib-name', connection.libName],
    ['lib-ver', connection.libVersion],
  ];
  const since = connection.unitsWaitSince;
  if (since !== undefined) fields.push(['ru-wait-ms', Math.round(performance.now() - since)]);
  return fields.map(([name, value]) => `${name}=${value}`).join(' ');
}

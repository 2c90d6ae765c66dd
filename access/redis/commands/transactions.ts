// MULTI, EXEC and optimistic locking. https://redis.io/docs/latest/develop/interact/transactions/

import { ClientFlag, type ClientCommand } from '../client.ts';
import { outOfRequestMemory } from '../held-memory.ts';
import { allKeys } from './spec.ts';

const flags = ['noscript', 'loading', 'stale', 'fast'] as const;

export const transactionCommands: readonly ClientCommand[] = [
  {
    name: 'multi',
    arity: 1,
    flags,
    group: 'transactions',
    since: '1.2.0',
    summary: 'Starts a transaction.',
    complexity: 'O(1)',
    immediate: true,
    handle(connection, _args, reply) {
      if (connection.flags & ClientFlag.multi) {
        reply.error('ERR MULTI calls can not be nested');
        return;
      }
      connection.beginTransaction();
      reply.ok();
    },
  },
  {
    name: 'exec',
    arity: 1,
    flags: ['noscript', 'loading', 'stale'],
    group: 'transactions',
    since: '1.2.0',
    summary: 'Executes all commands in a transaction.',
    complexity: 'Depends on commands in the transaction',
    immediate: true,
    handle(connection, _args, reply) {
      const { transaction } = connection;
      if (transaction === undefined) {
        reply.error('ERR EXEC without MULTI');
        return;
      }
      if (transaction.broken) {
        connection.endTransaction();
        reply.error('EXECABORT Transaction discarded because of previous errors.');
        return;
      }
      return connection.executeTransaction(reply);
    },
  },
  {
    name: 'discard',
    arity: 1,
    flags,
    group: 'transactions',
    since: '2.0.0',
    summary: 'Discards a transaction.',
    complexity: 'O(N), when N is the number of queued commands',
    immediate: true,
    handle(connection, _args, reply) {
      if (connection.transaction === undefined) {
        reply.error('ERR DISCARD without MULTI');
        return;
      }
      connection.endTransaction();
      reply.ok();
    },
  },
  {
    name: 'watch',
    longWords: true,
    maxWords: 16_384,
    arity: -2,
    syntax: 'key [key ...]',
    flags,
    keys: allKeys,
    group: 'transactions',
    since: '2.2.0',
    summary: 'Monitors changes to keys to determine the execution of a transaction.',
    complexity: 'O(1) for every key.',
    immediate: true,
    handle(connection, args, reply) {
      if (connection.transaction !== undefined) {
        reply.error('ERR WATCH inside MULTI is not allowed');
        return;
      }
      if (!connection.watchKeys(args)) {
        reply.error(outOfRequestMemory);
        return;
      }
      const begun = connection.watchHasBegun(args);
      if (begun === undefined) {
        reply.ok();
        return;
      }
      return begun.then(() => {
        if (!connection.closed) connection.answer().ok();
      });
    },
  },
  {
    name: 'unwatch',
    arity: 1,
    flags,
    group: 'transactions',
    since: '2.2.0',
    summary: 'Forgets about watched keys of a transaction.',
    complexity: 'O(1)',
    handle(connection, _args, reply) {
      connection.unwatch();
      reply.ok();
    },
  },
];

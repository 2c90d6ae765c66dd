// Lines by which a test knows that a server has failed.

import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { loggerTo } from '../../server/logging.ts';
import { fatalLines } from './fatal-lines.ts';

test('failures are told from warnings and errors', () => {
  let log = '';
  const logger = loggerTo({ write: (line) => (log += line) }, 'info');
  logger.error(new TypeError('of a request'));
  logger.fatal('the redis plane has failed');
  expect(fatalLines(log)).toEqual([expect.stringContaining('the redis plane')]);
});

test('so is what nobody caught', () => {
  const { stderr } = spawnSync(process.execPath, ['-e', 'throw new TypeError("broken")']);
  expect(fatalLines(stderr.toString())).toEqual(['TypeError: broken']);
});

import { describe, expect, test } from 'vitest';
import { Polyrow, type StartError } from '../support/polyrow.ts';
import { isBuilt, polyrow } from './polyrow-process.ts';

describe.skipIf(!isBuilt)('a server on a network', () => {
  test('does not start while the default user is open', async () => {
    const check = async (plane: string, ...flags: string[]) => {
      const where = [`--${plane}.host`, '0.0.0.0', ...flags];
      const error = await Polyrow.start({ flags: where }).catch((thrown: unknown) => thrown);
      expect((error as StartError).code).toBe(2);
      expect((error as StartError).output).toMatch(
        new RegExp(`^polyrow: ${plane}.host 0.0.0.0 .*redis.password.*--protected-mode no`),
      );
    };
    await check('redis');
    await check('influx');
  });

  test('starts with a password, or when it is insisted on', async () => {
    for (const flags of [
      ['--redis.password', 'secret'],
      ['--protected-mode', 'no'],
    ]) {
      const server = await Polyrow.start({ flags: ['--redis.host', '0.0.0.0', ...flags] });
      await server.remove();
    }
  });

  test('starts once the default user has a password of its own', async () => {
    const server = await Polyrow.start();
    try {
      const words = ['user', 'passwd', 'default', '--generate-password', '--json'];
      const { out } = await polyrow([...words, '--data-dir', server.dataDir]);
      const { password } = JSON.parse(out) as { password: string };
      await server.restart(['--redis.host', '0.0.0.0', '--influx.host', '0.0.0.0']);
      const client = await server.client();
      expect(await client.text('PING')).toMatch(/NOAUTH/);
      expect(await client.text('AUTH', password)).toMatch(/OK/);
      client.close();
    } finally {
      await server.remove();
    }
  });
});

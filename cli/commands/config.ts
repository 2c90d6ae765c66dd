// `polyrow config`: the settings of a running server, and the list of all settings.

import type { Command } from 'commander';
import type { ConfigItem } from '../../control/admin/config-view.ts';
import { configurationDocs } from '../../server/settings/docs.ts';
import { configKeys } from '../../server/settings/schema.ts';
import { didYouMean } from '../../server/settings/suggest.ts';
import { ExitError } from '../../server/lifecycle/exit-error.ts';
import { answer } from '../output/answer.ts';
import { exitCodes } from '../../server/exit-codes.ts';
import { type Column, grid } from '../output/grid.ts';
import { shorten } from '../output/values.ts';
import type { AdminClient } from './admin-client.ts';
import { type AccessFlags, withServer } from './server-access.ts';

export function configCommand(program: Command): void {
  const config = program.command('config').description('Settings of a running server.');
  withServer(
    config.command('list').description('Show all settings, and where their values came from.'),
    async (client, flags: AccessFlags) =>
      answer(flags, await itemsOf(client), (items) => grid(columns, items)),
  );
  withServer(
    config.command('get <setting>').description('Show the value of one setting.'),
    async (client, flags: AccessFlags, key) => {
      const item = find(await itemsOf(client), key!);
      await answer(flags, item, ({ value }) => String(value));
    },
  );
  withServer(
    config
      .command('set <setting> <value>')
      .description('Change a setting while the server runs, until it stops.'),
    async (client, flags: AccessFlags, key, value) => {
      const { settings } = (await client.request('PATCH', '/v1/config', { [key!]: value })) as {
        settings: ConfigItem[];
      };
      await answer(flags, find(settings, key!), (item) => `${item.key} is ${item.value}`);
    },
  );
  config
    .command('docs')
    .description('Print docs/configuration.md.')
    .action(() => {
      process.stdout.write(configurationDocs());
    });
}

async function itemsOf(client: AdminClient): Promise<ConfigItem[]> {
  return (await client.get<{ settings: ConfigItem[] }>('/v1/config')).settings;
}

function find(items: readonly ConfigItem[], key: string): ConfigItem {
  const item = items.find((one) => one.key === key);
  if (item !== undefined) return item;
  throw new ExitError(
    `there is no setting ${key}.${didYouMean(key, configKeys)}`,
    exitCodes.missing,
  );
}

const columns: Column<ConfigItem>[] = [
  { title: 'setting', value: ({ key }) => key },
  { title: 'value', value: ({ value }) => shorten(String(value), 60) },
  { title: 'from', value: ({ source }) => shorten(source, 60) },
  { title: 'while running', value: ({ live }) => (live ? 'yes' : '') },
];

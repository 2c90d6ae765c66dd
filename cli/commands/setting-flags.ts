// A flag for every setting, for whichever command takes settings.

import { type Command, Option } from 'commander';
import { acceptedKeys } from '../../server/settings/resolve.ts';
import { isConfigKey, settingOf } from '../../server/settings/schema.ts';
import { formatSize, type Setting } from '../../server/settings/setting.ts';

/** Adds the flags to a command; the function returned picks out those that were given. */
export function addSettingFlags(
  command: Command,
  wanted: (key: string) => boolean = () => true,
): () => Record<string, string> {
  const keys = acceptedKeys().filter(wanted);
  const attributes = new Map<string, string>();
  for (const key of keys) {
    const option = flagOf(key);
    command.addOption(option);
    attributes.set(key, option.attributeName());
  }
  return () => {
    const given: Record<string, string> = {};
    const values = command.opts<Record<string, string>>();
    for (const [key, attribute] of attributes) {
      const value = values[attribute];
      if (value !== undefined) given[key] = value;
    }
    return given;
  };
}

function flagOf(key: string): Option {
  const group = key.includes('.') ? `Settings, ${key.slice(0, key.indexOf('.'))}:` : 'Settings:';
  if (!isConfigKey(key)) {
    const secret = key.replace(/-file$/, '');
    return new Option(`--${key} <path>`, `File that holds ${secret}.`).helpGroup(group);
  }
  const setting = settingOf(key);
  const initial = defaultText(setting);
  const text = setting.description + (initial === '' ? '' : ` (default ${initial})`);
  return new Option(`--${key} <${argumentOf(setting)}>`, text).helpGroup(group);
}

function argumentOf(setting: Setting): string {
  switch (setting.type) {
    case 'integer':
      return setting.unit ?? 'number';
    case 'size':
      return 'bytes';
    case 'choice':
      return setting.choices.join('|');
    case 'text':
      return 'text';
  }
}

function defaultText(setting: Setting): string {
  return setting.type === 'size' ? formatSize(setting.default) : String(setting.default);
}

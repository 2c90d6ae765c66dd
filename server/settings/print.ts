// The effective configuration as a TOML file that says where each value came from.

import { stringify } from 'smol-toml';
import type { ResolvedConfig } from './resolve.ts';
import { type ConfigKey, configKeys, settingOf } from './schema.ts';

export function printConfig({ config, sources }: ResolvedConfig): string {
  const lines: string[] = [];
  let section = '';
  for (const key of configKeys) {
    const [table, name] = splitKey(key);
    if (table !== section) {
      lines.push('', `[${table}]`);
      section = table;
    }
    const isHidden = settingOf(key).secret && config[key] !== settingOf(key).default;
    const line = isHidden ? `# ${name} is hidden` : stringify({ [name]: config[key] }).trimEnd();
    lines.push(`${line}  # ${sources[key]}`);
  }
  return `${lines.join('\n')}\n`;
}

function splitKey(key: ConfigKey): [table: string, name: string] {
  const dot = key.lastIndexOf('.');
  return dot < 0 ? ['', key] : [key.slice(0, dot), key.slice(dot + 1)];
}

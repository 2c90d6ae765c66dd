// docs/configuration.md, made from the schema.

import { redisNameOf } from './redis-names.ts';
import { type ConfigKey, configKeys, environmentName, settingOf } from './schema.ts';
import { formatSize, type Setting } from './setting.ts';

const introduction = `# Configuration

<!-- Made by \`polyrow config docs\`. Change server/settings/*-settings.ts instead. -->

Every setting can be given as a flag, as an environment variable or in a TOML file; a flag wins over the
environment, that over the file, and that over the default. \`redis.port\`, for example, is:

| where | how |
| --- | --- |
| flag | \`polyrow start --redis.port 7000\`, or \`npm start -- --redis.port 7000\` |
| environment | \`POLYROW_REDIS_PORT=7000\` |
| file, given by \`--config polyrow.toml\` or \`POLYROW_CONFIG\` | \`port = 7000\` under \`[redis]\` |
| Redis client, where Redis has the setting and it can change while the server runs | \`CONFIG SET timeout 60\` |
| admin API, for settings that can change while the server runs | \`PATCH /v1/config {"redis.timeout": 60}\` |

\`polyrow start --check-config\` says whether a configuration is right, \`--print-config\` shows the one that is in
effect and where each value came from. An unknown name anywhere is an error. A change made while the server
runs lasts until it stops.

Sizes are numbers of bytes, or written as \`64mb\` (1mb is 1024 kb; 1m is 1000 k). A secret can be kept in a file:
\`--redis.password-file\`, \`POLYROW_REDIS_PASSWORD_FILE\` or \`password-file\` in the TOML file name it. An empty
environment variable counts as not set.
`;

export function configurationDocs(): string {
  const parts = [introduction];
  let section = '';
  for (const key of configKeys) {
    const name = key.includes('.') ? key.slice(0, key.indexOf('.')) : 'general';
    if (name !== section) {
      parts.push(
        `\n## ${name}\n\n| setting | effect | values | default | Redis name | while running |`,
      );
      parts.push('| --- | --- | --- | --- | --- | --- |');
      section = name;
    }
    parts.push(row(key, settingOf(key)));
  }
  return `${parts.join('\n')}\n`;
}

function row(key: ConfigKey, setting: Setting): string {
  const redisName = redisNameOf(key);
  const cells = [
    `\`${key}\`<br>\`${environmentName(key)}\``,
    setting.description,
    valuesOf(setting),
    defaultOf(setting),
    redisName === undefined ? '' : `\`${redisName}\``,
    setting.live ? 'yes' : '',
  ];
  return `| ${cells.join(' | ')} |`;
}

function valuesOf(setting: Setting): string {
  switch (setting.type) {
    case 'integer':
      return `${setting.min} to ${limit(setting.max, String)}${setting.unit ? ` ${setting.unit}` : ''}`;
    case 'size':
      return `${formatSize(setting.min)} to ${limit(setting.max, formatSize)}`;
    case 'choice':
      return setting.choices.map((choice) => `\`${choice}\``).join(', ');
    case 'text':
      return setting.meaning + (setting.secret ? ', secret' : '');
  }
}

function limit(max: number, format: (value: number) => string): string {
  return max === Number.MAX_SAFE_INTEGER ? 'no limit' : format(max);
}

function defaultOf(setting: Setting): string {
  if (setting.type === 'size') return `\`${formatSize(setting.default)}\``;
  return setting.default === '' ? 'none' : `\`${setting.default}\``;
}

// Every setting of the server, once. `--redis.port`, POLYROW_REDIS_PORT, `port` under [redis] in the file
// and the row in docs/configuration.md all come from the key `redis.port`.

import { admissionSettings } from './admission-settings.ts';
import { clusterSettings } from './cluster-settings.ts';
import { generalSettings } from './general-settings.ts';
import { influxSettings } from './influx-settings.ts';
import { redisSettings } from './redis-settings.ts';
import { storageSettings } from './storage-settings.ts';
import type { Setting, ValueOf } from './setting.ts';

export const settings = {
  ...generalSettings,
  ...redisSettings,
  ...influxSettings,
  ...storageSettings,
  ...admissionSettings,
  ...clusterSettings,
} as const satisfies Record<string, Setting>;

export type ConfigKey = keyof typeof settings;
/** The value of every setting; plain data. */
export type Config = { -readonly [K in ConfigKey]: ValueOf<(typeof settings)[K]> };
export type ConfigValue = Config[ConfigKey];

export const configKeys = Object.keys(settings) as ConfigKey[];

export function settingOf(key: ConfigKey): Setting {
  return settings[key];
}

export function isConfigKey(key: string): key is ConfigKey {
  return Object.hasOwn(settings, key);
}

export function defaultConfig(): Config {
  const config: Record<string, string | number> = {};
  for (const key of configKeys) config[key] = settings[key].default;
  return config as Config;
}

/** `redis.default-model` in the environment: POLYROW_REDIS_DEFAULT_MODEL. */
export function environmentName(key: string): string {
  return `POLYROW_${key.replaceAll(/[.-]/g, '_').toUpperCase()}`;
}

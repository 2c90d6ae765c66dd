// The configuration of a running server. Settings marked live may change; their users listen for changes.

import { exposures } from './exposure.ts';
import { parseOutputLimits } from './output-limits.ts';
import { type Config, type ConfigKey, type ConfigValue, settingOf } from './schema.ts';
import { allowed, parseValue } from './setting.ts';

type ConfigListener = (key: ConfigKey, value: ConfigValue) => void;

export class LiveConfig {
  readonly #config: Config;
  readonly #listeners: ConfigListener[] = [];

  constructor(config: Config) {
    this.#config = { ...config };
  }

  get<K extends ConfigKey>(key: K): Config[K] {
    return this.#config[key];
  }

  all(): Config {
    return { ...this.#config };
  }

  /** Sets a valid value, and notifies the listeners if it differs from the old value. */
  set(key: ConfigKey, value: ConfigValue): void {
    if (this.#config[key] === value) return;
    (this.#config as Record<ConfigKey, ConfigValue>)[key] = value;
    for (const listener of this.#listeners) listener(key, value);
  }

  /** The error of a text value for a live setting, if any. */
  check(key: ConfigKey, text: string): string | undefined {
    const setting = settingOf(key);
    if (!setting.live) return `${key} can only be changed by a restart`;
    const value = parseValue(setting, text);
    if (value === undefined) return `${key} must be ${allowed(setting)}`;
    return this.refusal(key, value as ConfigValue);
  }

  /** Reason for which a valid value cannot be applied at present; undefined if it can. */
  refusal(key: ConfigKey, value: ConfigValue): string | undefined {
    if (key === 'redis.client-output-buffer-limit') {
      const limits = parseOutputLimits(String(value));
      return typeof limits === 'string' ? limits : undefined;
    }
    if (key !== 'redis.password' || value !== '') return undefined;
    return exposures(this.#config, true)[0];
  }

  /** Takes on a value from a person that `check` found right. */
  change(key: ConfigKey, text: string): void {
    const value = parseValue(settingOf(key), text);
    if (value !== undefined) this.set(key, value as ConfigValue);
  }

  onChange(listener: ConfigListener): void {
    this.#listeners.push(listener);
  }
}

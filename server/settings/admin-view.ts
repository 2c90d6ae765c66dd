import type { ConfigView } from '../../control/admin/config-view.ts';
import type { LiveConfig } from './live-config.ts';
import { type ConfigKey, configKeys, isConfigKey, settingOf } from './schema.ts';
import { didYouMean } from './suggest.ts';

/** The live configuration for the admin API, with where each value came from at the start. */
export function configView(live: LiveConfig, sources: Record<ConfigKey, string>): ConfigView {
  const sourceOf = { ...sources };
  live.onChange((key) => {
    sourceOf[key] = 'changed while running';
  });
  return {
    list: () =>
      configKeys.map((key) => {
        const { secret = false, live: isLive, description, default: usual } = settingOf(key);
        const value = secret && live.get(key) !== usual ? '(hidden)' : live.get(key);
        return { key, value, source: sourceOf[key], live: isLive ?? false, secret, description };
      }),
    check: (key, value) =>
      isConfigKey(key)
        ? live.check(key, value)
        : `there is no setting ${key}.${didYouMean(key, configKeys)}`,
    change: (key, value) => {
      if (isConfigKey(key)) live.change(key, value);
    },
  };
}

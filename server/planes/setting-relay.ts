// Changes of live settings, from the control plane to the data planes and back.

import type { Logger } from '../logging.ts';
import type { LiveConfig } from '../settings/live-config.ts';
import { type Config, type ConfigKey, configKeys, settingOf } from '../settings/schema.ts';
import type { ConfigChange } from './messages.ts';
import type { PlaneHost, Planes } from './plane-host.ts';

const callTimeoutMs = 10_000;

export class SettingRelay {
  readonly #config: LiveConfig;
  readonly #planes: Planes;
  readonly #log: Logger;
  /** The plane whose client is changing a setting just now. */
  #changing: PlaneHost | undefined;

  constructor(config: LiveConfig, planes: Planes, log: Logger) {
    this.#config = config;
    this.#planes = planes;
    this.#log = log;
  }

  /** From now on every change is sent to the planes. */
  start(): void {
    this.#config.onChange((key, value) => {
      this.#log.info({ key, value: settingOf(key).secret ? '[hidden]' : value }, 'setting changed');
      if (key === 'log.level') this.#log.level = String(value);
      this.#send(key);
    });
  }

  /** Sends settings that changed while the planes started with these. */
  catchUp(started: Config): void {
    for (const key of configKeys) if (this.#config.get(key) !== started[key]) this.#send(key);
  }

  #send(key: ConfigKey): void {
    for (const plane of Object.values(this.#planes)) {
      // The plane that changed it already knows.
      if (plane === this.#changing || !plane.isUp) continue;
      plane
        .call('setConfig', { key, value: this.#config.get(key) }, callTimeoutMs)
        .catch((error: Error) =>
          this.#log.error(`the ${plane.name} plane did not take ${key}: ${error.message}`),
        );
    }
  }

  /** A client of the plane has changed a setting. */
  changedBy(plane: PlaneHost, change: ConfigChange): void {
    this.#changing = plane;
    try {
      this.#config.set(change.key, change.value);
    } finally {
      this.#changing = undefined;
    }
  }
}

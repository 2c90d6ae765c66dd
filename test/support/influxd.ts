// An influxd 1.x to compare with, reachable over its port. `isInstalled` says whether there is one.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from './free-port.ts';

export class InfluxProcess {
  static readonly isInstalled = spawnSync('influxd', ['version']).status === 0;

  readonly url: string;
  readonly #child: ChildProcess;
  readonly #folder: string;

  private constructor(url: string, child: ChildProcess, folder: string) {
    this.url = url;
    this.#child = child;
    this.#folder = folder;
  }

  /** `asksForCredentials`: it requires a login, once it has an administrator. */
  static async start({ asksForCredentials = false } = {}): Promise<InfluxProcess> {
    const folder = mkdtempSync(join(tmpdir(), 'influxd-test-'));
    const port = await freePort();
    const config = join(folder, 'influxdb.conf');
    writeFileSync(
      config,
      `reporting-disabled = true
bind-address = "127.0.0.1:${await freePort()}"
[meta]
  dir = "${folder}/meta"
[data]
  dir = "${folder}/data"
  wal-dir = "${folder}/wal"
  query-log-enabled = false
[http]
  bind-address = "127.0.0.1:${port}"
  log-enabled = false
  auth-enabled = ${asksForCredentials}
[monitor]
  store-enabled = false
[continuous_queries]
  enabled = false
`,
    );
    const child = spawn('influxd', ['-config', config], { stdio: 'ignore' });
    const server = new InfluxProcess(`http://127.0.0.1:${port}`, child, folder);
    for (let attempt = 0; ; attempt++) {
      try {
        await fetch(`${server.url}/ping`);
        return server;
      } catch (error) {
        if (attempt === 200 || child.exitCode !== null) throw error;
        await sleep(50);
      }
    }
  }

  async remove(): Promise<void> {
    if (this.#child.exitCode === null) {
      this.#child.kill('SIGKILL');
      await once(this.#child, 'exit');
    }
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

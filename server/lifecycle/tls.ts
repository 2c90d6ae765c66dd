// TLS of the whole server: which listeners speak it, and how a new certificate reaches all of them. Code of
// TLS itself is loaded only where it is spoken.

import type { TlsListeners, TlsMaterial } from '../../access/gateway/tls-context.ts';
import type { MetricSample } from '../../control/monitor/metric-sample.ts';
import type { Config } from '../settings/schema.ts';
import type { PlaneHost } from '../planes/plane-host.ts';
import { tlsListeners } from '../planes/plane-support.ts';
import type { DataDirectory } from './data-directory.ts';
import type { TlsFiles, TlsReport } from './tls-files.ts';

const callTimeoutMs = 10_000;

/** Certificate of the admin API, by which commands on the same data directory know their server. */
export const adminCertificateFile = 'admin-certificate';

/** Whether any listener speaks TLS. */
export function servesTls(config: Config): boolean {
  return (
    config['redis.tls'] === 'on' ||
    config['redis.tls-port'] !== 0 ||
    config['influx.tls'] === 'on' ||
    config['admin.tls'] === 'on'
  );
}

export class ServerTls {
  /** For the admin server; undefined when it speaks plain HTTP. */
  readonly admin: TlsListeners | undefined;
  readonly #files: TlsFiles;

  private constructor(files: TlsFiles, admin: TlsListeners | undefined) {
    this.#files = files;
    this.admin = admin;
  }

  /** Undefined when nothing speaks TLS. Throws `ExitError` when its files are not right. */
  static async open(config: Config, report: TlsReport): Promise<ServerTls | undefined> {
    if (!servesTls(config)) return undefined;
    const { TlsFiles } = await import('./tls-files.ts');
    const files = new TlsFiles(config, report);
    const isOn = config['admin.tls'] === 'on';
    return new ServerTls(files, isOn ? await tlsListeners(files.material) : undefined);
  }

  get material(): TlsMaterial {
    return this.#files.material;
  }

  /** From now on every listener gets a certificate that is new. */
  follow(planes: readonly PlaneHost[], data: DataDirectory): void {
    this.#tellCommands(data, this.material);
    this.#files.follow(async (material) => {
      const running = planes.filter((plane) => plane.isUp);
      await Promise.all(running.map((plane) => plane.call('tls', material, callTimeoutMs)));
      this.admin?.renew(material);
      this.#tellCommands(data, material);
    });
  }

  async reload(): Promise<void> {
    await this.#files.reload();
  }

  samples(): MetricSample[] {
    return [
      {
        name: 'polyrow_tls_certificate_expires_seconds',
        help: 'When the certificate in use expires, in seconds since 1970.',
        type: 'gauge',
        value: this.#files.expiresAt,
      },
    ];
  }

  close(): void {
    this.#files.close();
  }

  #tellCommands(data: DataDirectory, { certificate }: TlsMaterial): void {
    if (this.admin !== undefined) data.write(adminCertificateFile, certificate);
  }
}

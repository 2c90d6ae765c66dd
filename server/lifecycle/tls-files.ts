// TLS certificate files: read at the start and after changes. Unusable files are reported, and the previous ones stay in
// use.
//
// Files are polled every two seconds rather than watched: renewal may replace the files, their folder, or a link to them
// (as Kubernetes does), and polling notices all of that. Certificate and key are two files, so a change counts only once
// it is the same in two consecutive polls.

import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { contextOf, type TlsMaterial } from '../../access/gateway/tls-context.ts';
import type { Config } from '../settings/schema.ts';
import { ExitError } from './exit-error.ts';

const lookEveryMs = 2000;

const fileKeys = ['tls.cert-file', 'tls.key-file', 'tls.ca-file'] as const;
type FileKey = (typeof fileKeys)[number];

export type TlsReport = (
  level: 'info' | 'warn' | 'error',
  message: string,
  fields?: object,
) => void;

export class TlsFiles {
  readonly #config: Config;
  readonly #report: TlsReport;
  #material: TlsMaterial;
  /** State of the files at the last read, successful or not. */
  #stamp: string;
  #seen: string;
  #timer: NodeJS.Timeout | undefined;
  #renew: ((material: TlsMaterial) => Promise<void>) | undefined;
  #reading: Promise<void> = Promise.resolve();

  /** Throws `ExitError` when they cannot be served with. */
  constructor(config: Config, report: TlsReport) {
    this.#config = config;
    this.#report = report;
    this.#stamp = this.#look();
    this.#seen = this.#stamp;
    try {
      this.#material = readMaterial(config);
    } catch (error) {
      throw new ExitError(messageOf(error));
    }
    const problem = lifeProblem(this.#material);
    if (problem !== undefined) report('warn', `${config['tls.cert-file']}: ${problem}`);
  }

  get material(): TlsMaterial {
    return this.#material;
  }

  /** Seconds since 1970. */
  get expiresAt(): number {
    return Date.parse(new X509Certificate(this.#material.certificate).validTo) / 1000;
  }

  /** Calls `renew` with the files' contents whenever they have changed and are valid. */
  follow(renew: (material: TlsMaterial) => Promise<void>): void {
    this.#renew = renew;
    this.#timer = setInterval(() => this.#lookAgain(), lookEveryMs);
    this.#timer.unref();
  }

  /** Reads the files now, changed or not. Does nothing before `follow`. */
  reload(): Promise<void> {
    if (this.#renew === undefined) return Promise.resolve();
    this.#stamp = this.#look();
    this.#seen = this.#stamp;
    this.#reading = this.#reading.then(() => this.#read());
    return this.#reading;
  }

  close(): void {
    clearInterval(this.#timer);
    this.#renew = undefined;
  }

  #lookAgain(): void {
    const seen = this.#look();
    const stands = seen === this.#seen;
    this.#seen = seen;
    if (stands && seen !== this.#stamp) void this.reload();
  }

  /** Changes whenever a file's content changes. */
  #look(): string {
    return fileKeys
      .map((key) => this.#config[key])
      .map(stampOf)
      .join(', ');
  }

  async #read(): Promise<void> {
    const before = this.#material;
    const renew = this.#renew;
    if (renew === undefined) return;
    try {
      const material = readMaterial(this.#config);
      const problem = lifeProblem(material);
      if (problem !== undefined) throw new Error(`${this.#config['tls.cert-file']}: ${problem}`);
      await renew(material);
      this.#material = material;
    } catch (error) {
      this.#report('error', `the TLS certificate stays as it was: ${messageOf(error)}`);
      return;
    }
    const { subject, validTo } = new X509Certificate(this.#material.certificate);
    const isNew = this.#material.certificate !== before.certificate;
    this.#report('info', isNew ? 'new TLS certificate' : 'TLS files were read again', {
      subject: subject?.replaceAll('\n', ', '),
      validTo,
    });
  }
}

function stampOf(path: string): string {
  if (path === '') return '';
  try {
    const { ino, mtimeNs, size } = statSync(path, { bigint: true });
    return `${ino} ${mtimeNs} ${size}`;
  } catch {
    return 'not there';
  }
}

/** Throws with a message that names the setting at fault. */
function readMaterial(config: Config): TlsMaterial {
  const material: TlsMaterial = {
    certificate: readPem(config, 'tls.cert-file'),
    key: readPem(config, 'tls.key-file'),
    authorities: config['tls.ca-file'] === '' ? '' : readPem(config, 'tls.ca-file'),
    clientAuth: config['tls.client-auth'],
    minVersion: config['tls.min-version'],
  };
  const certificate = naming(config, 'tls.cert-file', 'is no certificate in PEM', () => {
    return new X509Certificate(material.certificate);
  });
  const key = naming(config, 'tls.key-file', 'is no private key in PEM without a passphrase', () =>
    createPrivateKey(material.key),
  );
  if (!certificate.checkPrivateKey(key)) {
    throw new Error(
      `${config['tls.key-file']} (tls.key-file) is not the key of ${config['tls.cert-file']} (tls.cert-file)`,
    );
  }
  if (material.authorities !== '') {
    naming(config, 'tls.ca-file', 'holds no certificates in PEM', () => {
      return new X509Certificate(material.authorities);
    });
  }
  naming(config, 'tls.cert-file', 'cannot be served with', () =>
    createSecureContext(contextOf(material)),
  );
  return material;
}

function readPem(config: Config, key: FileKey): string {
  try {
    return readFileSync(config[key], 'utf8');
  } catch (error) {
    throw new Error(`cannot read ${config[key]} (${key}): ${messageOf(error)}`, { cause: error });
  }
}

function naming<T>(config: Config, key: FileKey, what: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new Error(`${config[key]} (${key}) ${what}: ${messageOf(error)}`, { cause: error });
  }
}

/** Problem with a certificate's validity period, if any. */
function lifeProblem({ certificate }: TlsMaterial): string | undefined {
  const { validFrom, validTo } = new X509Certificate(certificate);
  const now = Date.now();
  if (Date.parse(validFrom) > now) return `the certificate is not good before ${validFrom}`;
  if (Date.parse(validTo) < now) return `the certificate has expired, ${validTo}`;
  return undefined;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

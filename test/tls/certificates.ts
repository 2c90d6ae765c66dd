// Certificates for tests, made by openssl: an authority, and what it vouches for.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface IssuedCertificate {
  certificateFile: string;
  keyFile: string;
  certificate: string;
  key: string;
}

export class Authority {
  readonly folder = mkdtempSync(join(tmpdir(), 'polyrow-ca-'));
  readonly certificateFile: string;
  readonly certificate: string;
  readonly #keyFile: string;
  #issued = 0;

  constructor(name = 'Test Authority') {
    this.certificateFile = join(this.folder, 'ca.pem');
    this.#keyFile = join(this.folder, 'ca.key');
    makeKey(this.#keyFile);
    const subject = ['-subj', `/CN=${name}`, '-days', '2'];
    openssl(
      'req',
      '-x509',
      '-new',
      '-key',
      this.#keyFile,
      '-out',
      this.certificateFile,
      ...subject,
    );
    this.certificate = readFileSync(this.certificateFile, 'utf8');
  }

  /** For 127.0.0.1 and localhost. `days` may be negative: it has expired then. */
  issue(name: string, days = 2): IssuedCertificate {
    const base = join(this.folder, `${++this.#issued}`);
    const [keyFile, request, certificateFile, extensions] = [
      `${base}.key`,
      `${base}.csr`,
      `${base}.pem`,
      `${base}.ext`,
    ] as const;
    makeKey(keyFile);
    openssl('req', '-new', '-key', keyFile, '-out', request, '-subj', `/CN=${name}`);
    writeFileSync(extensions, 'subjectAltName=DNS:localhost,IP:127.0.0.1\n');
    const by = ['-CA', this.certificateFile, '-CAkey', this.#keyFile];
    const what = ['-req', '-in', request, '-out', certificateFile, '-extfile', extensions];
    openssl('x509', ...what, ...by, '-set_serial', String(this.#issued), '-days', String(days));
    return {
      certificateFile,
      keyFile,
      certificate: readFileSync(certificateFile, 'utf8'),
      key: readFileSync(keyFile, 'utf8'),
    };
  }

  remove(): void {
    rmSync(this.folder, { recursive: true });
  }
}

function makeKey(file: string): void {
  openssl('ecparam', '-name', 'prime256v1', '-genkey', '-noout', '-out', file);
}

function openssl(...words: string[]): void {
  execFileSync('openssl', words, { stdio: ['ignore', 'ignore', 'pipe'] });
}

/** Whether openssl is installed. */
export const hasOpenssl = ((): boolean => {
  try {
    openssl('version');
    return true;
  } catch {
    return false;
  }
})();

// Detects listeners that expose data without a password. Scanners find such servers within hours, so the server does not
// start.

import type { Config } from './schema.ts';

/** Reasons why the server must not listen on the configured addresses, one a line. */
export function exposures(config: Config, defaultUserIsOpen: boolean): string[] {
  if (!defaultUserIsOpen) return [];
  const problems: string[] = [];
  if (config['protected-mode'] === 'no') return [];
  for (const plane of ['redis', 'influx'] as const) {
    if (isLoopback(config[`${plane}.host`])) continue;
    if (asksForCertificates(config, plane)) continue;
    problems.push(
      `${plane}.host ${config[`${plane}.host`]} can be reached from elsewhere, and the user default needs no password: ` +
        `set redis.password (or redis.password-file), use 127.0.0.1, or insist with --protected-mode no`,
    );
  }
  return problems;
}

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host === '[::1]' || /^127(\.\d+){3}$/.test(host);
}

/** Whether clients need a certificate of the configured authority. */
function asksForCertificates(config: Config, plane: 'redis' | 'influx'): boolean {
  return config['tls.client-auth'] === 'require' && config[`${plane}.tls`] === 'on';
}

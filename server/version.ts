import { existsSync, readFileSync } from 'node:fs';

/** The package's version, whether run compiled from dist/ or not. */
export function packageVersion(): string {
  for (let url = new URL('.', import.meta.url); ; url = new URL('..', url)) {
    const file = new URL('package.json', url);
    if (existsSync(file))
      return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
    if (url.pathname === '/') return 'unknown';
  }
}

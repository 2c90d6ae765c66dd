// Tells one run of the operating system from the next: what a process has written and not synced is lost between them.

import { readFileSync } from 'node:fs';

/** '' where the system does not tell: then each start of a process counts as one of the machine. */
export function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return '';
  }
}

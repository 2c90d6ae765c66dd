// Identifies a boot of the operating system. Unsynced writes of a process are lost between two boots.

import { readFileSync } from 'node:fs';

/** '' where the system does not tell: then each start of a process counts as one of the machine. */
export function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return '';
  }
}

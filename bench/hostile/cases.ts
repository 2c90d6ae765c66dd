// The cases by name: each attack, and all of them at once.

import type { Attack } from './attack.ts';
import { influxAttacks } from './influx-attacks.ts';
import { loginAttacks } from './login-attacks.ts';
import { redisAttacks } from './redis-attacks.ts';

export interface HostileCase {
  readonly name: string;
  readonly what: string;
}

const everything = 'all-at-once';
/** These change the server, or take long: they say nothing more beside the others. */
const alone: ReadonlySet<string> = new Set([
  'silent-connections',
  'readable-files',
  'audit-flood',
  'made-up-credentials',
]);

const attacks: readonly Attack[] = [...redisAttacks, ...influxAttacks, ...loginAttacks];
const together = attacks.filter(({ name }) => !alone.has(name));

export const hostileCases: readonly HostileCase[] = [
  ...attacks,
  { name: everything, what: `the other ${together.length} at the same time` },
];

/** The attacks of a case. */
export function attacksOf(name: string): readonly Attack[] {
  if (name !== everything) return attacks.filter((attack) => attack.name === name);
  // Attacks judged on their own are not judged again where all share the machine.
  return allOnce(together.map(({ verdict: _verdict, ...attack }) => attack));
}

/** Tenants are created once, and the memory bound is that of one attack: they share one budget. */
function allOnce(all: readonly Attack[]): Attack[] {
  let made: Promise<void> | undefined;
  const tenants = all.find(({ name }) => name === 'password-queue')?.prepare;
  return all.map((attack) => {
    if (attack.prepare === undefined || attack.prepare !== tenants) return attack;
    return { ...attack, prepare: (target) => (made ??= tenants(target)) };
  });
}

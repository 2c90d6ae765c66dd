/** Of every random test in CI that is given no other. */
export const seedInCI = 1;

/** What the environment variable says; else the fixed seed in CI and a new one, below 10^6, everywhere else. */
export function seedFrom(variable: string): number {
  const given = process.env[variable];
  if (given !== undefined) return Number(given);
  return process.env['CI'] ? seedInCI : Math.floor(Math.random() * 1_000_000);
}

/** Default seed of random tests in CI. */
export const seedInCI = 1;

/**
 * Seed from the environment variable; else the fixed seed in CI and a new one, below 10^6,
 * elsewhere.
 */
export function seedFrom(variable: string): number {
  const given = process.env[variable];
  if (given !== undefined) return Number(given);
  return process.env['CI'] ? seedInCI : Math.floor(Math.random() * 1_000_000);
}

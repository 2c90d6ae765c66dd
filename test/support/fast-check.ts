// fast-check, as the tests import it (vitest.config.ts): with one seed in CI, where a commit passes or fails and does not
// pass by chance; with a new seed in every other run.

import { configureGlobal } from '../../node_modules/fast-check/lib/fast-check.js';
import { seedInCI } from './seed.ts';

export * from '../../node_modules/fast-check/lib/fast-check.js';
export { default } from '../../node_modules/fast-check/lib/fast-check.js';

if (process.env['CI']) configureGlobal({ seed: seedInCI });

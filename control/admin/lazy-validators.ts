// Validators of the admin API's pages, each compiled when its page is first asked for: to compile all of them at each start
// took 0.35 s of processor time.

import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { BuildCompilerFromPool } from '@fastify/ajv-compiler';

type Compile = ReturnType<BuildCompilerFromPool>;
type Validate = ReturnType<Compile>;

/** The compiler that fastify uses by default, loaded lazily and in fastify's own version. */
function compilerOf(...pool: Parameters<BuildCompilerFromPool>): Compile {
  const here = createRequire(join(import.meta.dirname, 'lazy-validators.js'));
  const ofFastify = createRequire(here.resolve('fastify'));
  const build = ofFastify('@fastify/ajv-compiler') as () => BuildCompilerFromPool;
  return build()(...pool);
}

const buildValidator: BuildCompilerFromPool = (schemas, options) => {
  let compile: Compile | undefined;
  return (route) => {
    let validate: Validate | undefined;
    const lazy = (data: unknown): unknown => {
      compile ??= compilerOf(schemas, options);
      validate ??= compile(route);
      const isValid = validate(data);
      lazy.errors = validate.errors;
      return isValid;
    };
    lazy.errors = undefined as Validate['errors'];
    return lazy as Validate;
  };
};

export const lazyValidators = { compilersFactory: { buildValidator } };

import { expect, test } from 'vitest';
import {
  builtInEngines,
  EngineRegistry,
  UnknownModelError,
  type EngineFactory,
} from './registry.ts';

function factory(model: string): EngineFactory {
  return {
    model,
    create: () => {
      throw new Error('not created here');
    },
  };
}

test('looks a factory up by its model', () => {
  const kv = factory('kv');
  const registry = new EngineRegistry([kv]);
  const memory = factory('memory');
  registry.register(memory);
  expect(registry.lookup('kv')).toBe(kv);
  expect(registry.lookup('memory')).toBe(memory);
  expect(registry.models()).toEqual(['kv', 'memory']);
});

test('an unknown model is an error that names those there are', () => {
  const registry = new EngineRegistry([factory('memory'), factory('kv')]);
  expect(() => registry.lookup('graph')).toThrow(UnknownModelError);
  expect(() => registry.lookup('graph')).toThrow(
    "no engine for the model 'graph' (there are: kv, memory)",
  );
  expect(() => new EngineRegistry().lookup('kv')).toThrow('(there are: none)');
});

test('a model is registered once and has a name', () => {
  const registry = new EngineRegistry([factory('kv')]);
  expect(() => registry.register(factory('kv'))).toThrow("the model 'kv' is registered already");
  expect(() => registry.register(factory(''))).toThrow('an engine needs a model name');
  expect(registry.models()).toEqual(['kv']);
});

test('the engines of the server', () => {
  expect(builtInEngines().models()).toEqual(['kv', 'memory']);
});

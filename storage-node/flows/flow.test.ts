import { describe, expect, test } from 'vitest';
import { Action } from '../../universal-row/command.ts';
import { compile } from './compile.ts';
import { Flow, type PlacedTask, type Task } from './flow.ts';
import { FlowRegistry, type Placement } from './flow-registry.ts';

function nothing(): void {}

/** `a` comes first, `b<a` after it, `c<a,b` after both. */
function tasks(...places: string[]): PlacedTask<void>[] {
  return places.map((place) => {
    const [name, after] = place.split('<') as [string, string | undefined];
    return { name, after: after?.split(',') ?? [], run: nothing };
  });
}

describe('a flow', () => {
  const order = (...places: string[]) =>
    new Flow('f', tasks(...places)).tasks.map((task) => task.name).join(' ');

  test('puts each task after those it needs, and changes no order without need', () => {
    expect(order('a', 'b<a', 'c<b')).toBe('a b c');
    expect(order('c<b', 'b<a', 'a')).toBe('a b c');
    expect(order('x', 'b<a', 'y', 'a', 'z<b,x')).toBe('x y a b z');
    expect(order()).toBe('');
  });

  test('says what is wrong with one that cannot be', () => {
    const check = (message: string, ...places: string[]) =>
      expect(() => new Flow('f', tasks(...places))).toThrow(message);
    check('flow f: a cycle, a after a', 'a<a');
    check('flow f: a cycle, b after d after c after b', 'a', 'b<a,d', 'c<b', 'd<c', 'e<d');
    check('flow f: two tasks are called a', 'a', 'b<a', 'a');
    check('flow f: b comes after z, which it does not have (it has a, b)', 'a', 'b<z');
    const many = Array.from({ length: 32 }, (_, i) => `t${i}`);
    check('flow f: 32 tasks, at most 31 are possible', ...many);
    expect(new Flow('f', tasks(...many.slice(1))).tasks).toHaveLength(31);
  });
});

describe('the registry', () => {
  const audit: Task<void> = { name: 'audit', run: nothing };
  const flowOf = (registry: FlowRegistry<void>, action: Action, model = 'memory') =>
    registry
      .flow(action, model)
      .map((task) => task.name)
      .join(' ');
  const write = 'decode admit read translate encode apply log reply';
  const read = 'decode admit read translate reply';

  test('has the standard flow of every action', () => {
    const registry = new FlowRegistry<void>();
    for (const action of Object.values(Action)) {
      const writes = action >= Action.update && action <= Action.delete;
      expect(flowOf(registry, action)).toBe(writes ? write : read);
      expect(compile(registry, action, 'memory')).toBeUndefined();
    }
  });

  test('adds a task with one registration, where it says and for what it says', () => {
    const registry = new FlowRegistry<void>();
    registry.register(audit, { after: 'reply', actions: [Action.put], models: ['kv'] });
    expect(flowOf(registry, Action.put, 'kv')).toBe(`${write} audit`);
    expect(flowOf(registry, Action.put, 'memory')).toBe(write);
    expect(flowOf(registry, Action.update, 'kv')).toBe(write);
    registry.register({ ...audit, name: 'tokens' }, { before: 'admit' });
    expect(flowOf(registry, Action.fetch, 'kv')).toBe('decode tokens admit read translate reply');
    registry.register({ ...audit, name: 'quorum' }, { after: 'translate', before: 'reply' });
    expect(flowOf(registry, Action.scan)).toBe('decode tokens admit read translate quorum reply');
  });

  test('compiles extra tasks into those before, those that hold the answer, and those after it', () => {
    const registry = new FlowRegistry<void>();
    const add = (name: string, place: Placement) =>
      registry.register({ name, run: nothing }, { ...place, actions: [Action.put] });
    add('tenant', { after: 'decode', before: 'admit' });
    add('tokens', { after: 'tenant', before: 'admit' });
    add('quorum', { after: 'log', before: 'reply' });
    add('audit', { after: 'reply' });
    add('notify', { after: ['log', 'quorum'] });
    add('count', { after: 'tenant' });
    const plan = compile(registry, Action.put, 'memory')!;
    const parts = [plan.before, plan.gates, plan.after].map((flow) =>
      flow!.tasks.map(({ name, after }) => `${name}<${after.join(',')}`).join(' '),
    );
    expect(parts).toEqual(['tenant< tokens<tenant', 'quorum<', 'audit< notify< count<']);
    expect(compile(registry, Action.fetch, 'memory')).toBeUndefined();
  });

  test('refuses a registration that some flow cannot take, and is as it was', () => {
    const registry = new FlowRegistry<void>();
    const check = (place: Placement, message: string) =>
      expect(() => registry.register(audit, place)).toThrow(message);
    check({}, 'task audit: name the task that it comes before or after');
    check(
      { after: 'log' },
      'flow fetch *: audit comes after log, which it does not have (it has decode, admit, read, translate, reply, audit)',
    );
    check(
      { before: 'applause', actions: [Action.put] },
      'flow put *: audit comes before applause, which it does not have',
    );
    check({ after: 'reply', before: 'admit' }, 'flow fetch *: a cycle');
    check({ before: 'decode' }, 'audit comes before decode, where there is no command yet');
    check(
      { after: 'encode', before: 'apply', actions: [Action.update], models: ['kv'] },
      'flow update kv: audit would lie between admit and log, but the pod does ' +
        'admit, read, translate, encode, apply, log in one go: put it before admit or after log',
    );
    expect(flowOf(registry, Action.fetch)).toBe(read);
    registry.register(audit, { after: 'reply' });
    check({ after: 'reply' }, 'flow fetch *: two tasks are called audit');
    expect(flowOf(registry, Action.fetch)).toBe(`${read} audit`);
  });
});

import { describe, expect, test } from 'vitest';
import { MemoryStore } from '../metadata/memory-store-fixture.ts';
import type { Json } from '../metadata/document-store.ts';
import type { ActionStep, StepContext, WorkflowDefinition, WorkflowDocument } from './workflow.ts';
import { hasEnded } from './workflow.ts';
import { Random } from '../../test/support/random.ts';
import { locks, Mortal, VirtualTimers } from './workflow-fixture.ts';

/** State changed by the steps: enabled `node`s, and replicas by partition. */
interface World {
  enabled: boolean;
  exists: boolean;
  replicas: Map<string, Set<string>>;
}

function newWorld(): World {
  return {
    enabled: true,
    exists: true,
    replicas: new Map(['p1', 'p2', 'p3'].map((partition) => [partition, new Set(['old'])])),
  };
}

/** Each change happens between two points at which the process may die. */
function action(
  process: Mortal,
  name: string,
  run: (context: StepContext) => void,
  compensate?: (context: StepContext) => void,
): ActionStep {
  const between = (change: (context: StepContext) => void) => async (context: StepContext) => {
    await process.point();
    change(context);
    await process.point();
  };
  return {
    name,
    run: between(run),
    ...(compensate === undefined ? {} : { compensate: between(compensate) }),
  };
}

/** Drops a node: disable it, move all replicas away side by side, delete it. */
function dropNode(world: World, failsAt?: string): (process: Mortal) => WorkflowDefinition[] {
  return (process) => {
    const fail = (name: string): void => {
      if (name === failsAt) throw new Error(`${name} fails`);
    };
    const replicas = (input: Json): Set<string> => world.replicas.get(input as string)!;
    return [
      {
        kind: 'drop-node',
        resources: () => ['node'],
        steps: [
          action(
            process,
            'disable',
            () => (world.enabled = false),
            () => (world.enabled = true),
          ),
          {
            name: 'move-replicas',
            isParallel: true,
            nest: async () => {
              await process.point();
              return [...world.replicas.keys()].map((input) => ({ kind: 'move-replica', input }));
            },
          },
          action(
            process,
            'delete',
            () => {
              fail('delete');
              world.exists = false;
            },
            () => (world.exists = true),
          ),
          action(process, 'report', () => fail('report')),
        ],
      },
      {
        kind: 'move-replica',
        resources: (input) => [`partition-${input as string}`],
        steps: [
          action(
            process,
            'add',
            ({ input }) => {
              fail(`add ${input as string}`);
              replicas(input).add('new');
            },
            ({ input }) => replicas(input).delete('new'),
          ),
          action(
            process,
            'remove',
            ({ input }) => {
              fail(`remove ${input as string}`);
              replicas(input).delete('old');
            },
            ({ input }) => replicas(input).add('old'),
          ),
        ],
      },
    ];
  };
}

function stateOf(world: World): string {
  const { enabled, exists, replicas } = world;
  return JSON.stringify({
    enabled,
    exists,
    replicas: [...replicas].map(([p, on]) => [p, [...on]]),
  });
}

const untouched = stateOf(newWorld());
const dropped = stateOf({
  enabled: false,
  exists: false,
  replicas: new Map(['p1', 'p2', 'p3'].map((partition) => [partition, new Set(['new'])])),
});

describe('a process that dies', () => {
  // Each process after the first dies as well, some points later, until one survives.
  test.each([
    ['a workflow that succeeds', undefined, 'done', dropped],
    ['one whose last step fails', 'report', 'rolled-back', untouched],
    ['one whose second nested workflow fails', 'remove p2', 'rolled-back', untouched],
    ['one whose third nested workflow fails at once', 'add p3', 'rolled-back', untouched],
  ] as const)('%s: at every point', async (_what, failsAt, status, expected) => {
    let deaths = 0;
    for (let diesAt = 0; ; diesAt++) {
      const store = new MemoryStore();
      const timers = new VirtualTimers();
      const world = newWorld();
      const definitions = dropNode(world, failsAt);
      const asker = await Mortal.start(store, timers, () => [], {});
      asker.engine.register(dropNode(newWorld())(asker)[0]!);
      await store.write([{ ...asker.engine.submission('w', 'drop-node', null), expected: 0 }]);
      await asker.engine.close();

      let process = await Mortal.start(store, timers, definitions, { diesAt });
      let next = diesAt;
      const document = (): WorkflowDocument => process.engine.find('w')!;
      for (;;) {
        await timers.until(() => process.isDead || hasEnded(document()));
        if (!process.isDead) break;
        deaths++;
        next = Math.max(4, Math.floor(next / 2) + 3);
        process = await Mortal.start(store, timers, definitions, {
          // The second life may end as well; the third does not.
          diesAt: deaths % 2 === 0 ? Infinity : next,
        });
      }
      expect(document().status, `dies at ${diesAt}`).toBe(status);
      expect(stateOf(world), `dies at ${diesAt}`).toBe(expected);
      expect(locks(store), `dies at ${diesAt}`).toEqual([]);
      const isAlive = process.points > 0 && diesAt > 200;
      await process.engine.close();
      if (isAlive || diesAt > process.points + 40) break;
    }
    expect(deaths).toBeGreaterThan(30);
  });
});

test('an owner that was only slow can write nothing once another process has taken over', async () => {
  const store = new MemoryStore();
  const timers = new VirtualTimers();
  const runs: string[] = [];
  let release = (): void => {};
  const definition = (name: string) => (): WorkflowDefinition[] => [
    {
      kind: 'k',
      resources: () => ['r'],
      steps: [
        {
          name: 'first',
          run: async () => {
            runs.push(`first by ${name}`);
            if (name === 'slow') await new Promise<void>((resolve) => (release = resolve));
          },
        },
        { name: 'second', run: async () => void runs.push(`second by ${name}`) },
      ],
    },
  ];
  const slow = await Mortal.start(store, timers, definition('slow'), {});
  await slow.engine.submit('w', 'k', null);
  await timers.until(() => runs.length === 1);
  // The process hangs: it renews no lease.
  const goOn = slow.stall();
  const other = await Mortal.start(store, timers, definition('other'), {});
  await timers.until(() => hasEnded(other.engine.find('w')!));
  const { revision } = store;
  goOn();
  release();
  await timers.until(() => slow.engine.find('w')?.status === 'done');
  expect(runs).toEqual(['first by slow', 'first by other', 'second by other']);
  expect(store.revision).toBe(revision);
  await Promise.all([slow.engine.close(), other.engine.close()]);
});

test('a lease is kept however long a step takes', async () => {
  const store = new MemoryStore();
  const timers = new VirtualTimers();
  let runs = 0;
  const definition = (): WorkflowDefinition[] => [
    {
      kind: 'k',
      resources: () => [],
      steps: [
        {
          name: 'long',
          run: async () => {
            runs++;
            await new Promise<void>((resolve) => timers.after(600_000, resolve));
          },
        },
      ],
    },
  ];
  const one = await Mortal.start(store, timers, definition);
  const two = await Mortal.start(store, timers, definition);
  await one.engine.submit('w', 'k', null);
  await timers.until(() => hasEnded(two.engine.find('w')!));
  expect(runs).toBe(1);
  await Promise.all([one.engine.close(), two.engine.close()]);
});

describe('conflicts', () => {
  test.each([1, 2, 3, 4, 5, 6])(
    '50 workflows on 8 resources, three processes of which two die, seed %i',
    async (seed) => {
      const random = (
        (of) => () =>
          of.next()
      )(new Random(seed));
      const store = new MemoryStore();
      const timers = new VirtualTimers();
      /** Processes in a step that needs the resource, without dead ones. */
      const inside = new Map<string, { process: Mortal; workflow: string }>();
      const counts = new Map<string, number>();
      const enter = async (
        process: Mortal,
        workflow: string,
        resources: string[],
      ): Promise<void> => {
        for (const resource of resources) {
          const there = inside.get(resource);
          const isHeld =
            there !== undefined && !there.process.isDead && there.workflow !== workflow;
          if (isHeld) throw new Error(`${workflow} and ${there.workflow} both change ${resource}`);
          inside.set(resource, { process, workflow });
        }
        await new Promise<void>((resolve) => timers.after(random() * 1000, resolve));
        await process.point();
        for (const resource of resources) inside.delete(resource);
      };
      const failures: string[] = [];
      const work = (process: Mortal, name: string, count: 1 | 0): ActionStep => ({
        name,
        run: async ({ input, workflow }) => {
          await enter(process, workflow, input as string[]).catch((error: Error) => {
            failures.push(error.message);
          });
          if (count === 1) counts.set(workflow, 1);
          if (random() < 0.05) throw new Error('it fails');
        },
        compensate: async ({ input, workflow }) => {
          await enter(process, workflow, input as string[]).catch((error: Error) => {
            failures.push(error.message);
          });
          if (count === 1) counts.set(workflow, 0);
        },
      });
      const definitions = (process: Mortal): WorkflowDefinition[] => [
        {
          kind: 'outer',
          resources: (input) => (input as string[]).slice(0, 1),
          steps: [
            {
              name: 'nested',
              nest: async ({ input }) =>
                (input as string[]).map((each) => ({ kind: 'inner', input: [each] })),
            },
          ],
        },
        {
          kind: 'inner',
          resources: (input) => input as string[],
          steps: [work(process, 'one', 1), work(process, 'two', 0)],
        },
      ];
      const processes = [
        await Mortal.start(store, timers, definitions, { concurrency: 6 }),
        await Mortal.start(store, timers, definitions, { concurrency: 6, diesAt: 12 }),
        await Mortal.start(store, timers, definitions, { concurrency: 6, diesAt: 24 }),
      ];
      const { engine } = processes[0]!;
      for (let n = 0; n < 50; n++) {
        const names = Array.from(
          { length: 1 + Math.floor(random() * 3) },
          () => `r${Math.floor(random() * 8)}`,
        );
        await engine.submit(`w${n}`, random() < 0.5 ? 'outer' : 'inner', [...new Set(names)]);
      }
      await timers.until(() => engine.list().every(({ document }) => hasEnded(document)));
      expect(failures).toEqual([]);
      expect(processes.map(({ isDead }) => isDead)).toEqual([false, true, true]);
      const byStatus = engine.list().map(({ document }) => document.status);
      expect(byStatus.filter((status) => status === 'done').length).toBeGreaterThan(10);
      for (const { id, document } of engine.list()) {
        expect(counts.get(id) ?? 0, id).toBe(document.status === 'done' ? 1 : 0);
      }
      expect(locks(store)).toEqual([]);
      await engine.close();
    },
  );

  test('first come, first served: one that needs many resources is not passed for ever', async () => {
    const store = new MemoryStore();
    const timers = new VirtualTimers();
    const order: string[] = [];
    const { engine } = await Mortal.start(store, timers, () => [
      {
        kind: 'k',
        resources: (input) => input as string[],
        steps: [
          {
            name: 's',
            run: async ({ workflow }) => {
              order.push(workflow);
              await new Promise<void>((resolve) => timers.after(1000, resolve));
            },
          },
        ],
      },
    ]);
    await engine.submit('1', 'k', ['a']);
    await engine.submit('2', 'k', ['a', 'b']);
    await engine.submit('3', 'k', ['b']);
    await engine.submit('4', 'k', ['c']);
    await timers.until(() => engine.list().every(({ document }) => hasEnded(document)));
    expect(order).toEqual(['1', '4', '2', '3']);
    await engine.close();
  });
});

describe('requests', () => {
  async function oneStep(
    run: () => Promise<void>,
    more: { compensate?: () => Promise<void>; isPointOfNoReturn?: boolean } = {},
  ): Promise<{ process: Mortal; timers: VirtualTimers; store: MemoryStore }> {
    const store = new MemoryStore();
    const timers = new VirtualTimers();
    const steps = [
      { name: 's', run, ...more },
      { name: 'pause', run: () => new Promise<void>((resolve) => timers.after(1000, resolve)) },
      { name: 'last', run: async () => {} },
    ];
    const process = await Mortal.start(
      store,
      timers,
      () => [{ kind: 'k', resources: () => ['r'], steps }],
      { history: 5, limit: 10 },
    );
    return { process, timers, store };
  }

  test('cancellation rolls back what was done, also what waits', async () => {
    let undone = 0;
    const compensate = async (): Promise<void> => void undone++;
    const { process, timers, store } = await oneStep(async () => {}, { compensate });
    const { engine } = process;
    await engine.submit('a', 'k', null);
    await engine.submit('b', 'k', null);
    await timers.until(() => engine.find('a')!.steps['s'] !== undefined);
    await engine.cancel('a');
    await engine.cancel('b');
    await timers.until(() => hasEnded(engine.find('a')!) && hasEnded(engine.find('b')!));
    expect(engine.find('a')).toMatchObject({ status: 'rolled-back', error: 'it was cancelled' });
    expect(engine.find('b')).toMatchObject({ status: 'rolled-back', steps: {} });
    expect(undone).toBe(1);
    expect(locks(store)).toEqual([]);
    await expect(engine.cancel('a')).rejects.toThrow('cannot be rolled back');
    await expect(engine.cancel('c')).rejects.toThrow('there is no workflow c');
    await engine.close();
  });

  test('past the point of no return steps are tried until they succeed', async () => {
    let attempts = 0;
    const run = async (): Promise<void> => {
      if (++attempts < 20) throw new Error('not yet');
    };
    const { process, timers } = await oneStep(run, { isPointOfNoReturn: true });
    const { engine } = process;
    await engine.submit('a', 'k', null);
    await timers.until(() => attempts > 2);
    expect(engine.find('a')).toMatchObject({ status: 'running', error: 's failed: not yet' });
    await expect(engine.cancel('a')).rejects.toThrow('cannot be rolled back');
    expect(
      (
        await Promise.all([engine.ended('a', 1e9), timers.until(() => hasEnded(engine.find('a')!))])
      )[0],
    ).toMatchObject({ status: 'done' });
    expect(attempts).toBe(20);
    await engine.close();
  });

  test('what cannot be undone is parked with its locks, until it is resumed', async () => {
    let isFixed = false;
    let attempts = 0;
    const { process, timers, store } = await oneStep(
      async () => {
        throw new Error('no');
      },
      {
        compensate: async () => {
          attempts++;
          if (!isFixed) throw new Error('still no');
        },
      },
    );
    const { engine } = process;
    await engine.submit('a', 'k', null);
    await timers.until(() => engine.find('a')!.status === 'parked');
    expect(engine.find('a')!.error).toBe('s cannot be undone: still no');
    expect(attempts).toBe(8);
    expect(locks(store)).toEqual(['workflowLocks/r']);
    isFixed = true;
    await engine.resume('a');
    await timers.until(() => hasEnded(engine.find('a')!));
    expect(engine.find('a')!.status).toBe('rolled-back');
    expect(locks(store)).toEqual([]);
    await expect(engine.resume('a')).rejects.toThrow('is not parked');
    await engine.close();
  });

  test('those that have ended are kept up to a number, those that have not are refused beyond one', async () => {
    const { process, timers } = await oneStep(async () => {});
    const { engine } = process;
    for (let n = 0; n < 10; n++) await engine.submit(`w${n}`, 'k', null);
    await expect(engine.submit('w10', 'k', null)).rejects.toThrow('10 workflows have not ended');
    await timers.until(() => engine.list().every(({ document }) => hasEnded(document)));
    await timers.until(() => engine.list().length === 5);
    expect(engine.list().map(({ id }) => id)).toEqual(['w5', 'w6', 'w7', 'w8', 'w9']);
    expect(engine.samples().find(({ labels }) => labels?.['status'] === 'done')?.value).toBe(5);
    await engine.close();
  });

  test('a store that is out of reach for a moment is not a step that fails', async () => {
    const { process, timers, store } = await oneStep(async () => {});
    const { engine } = process;
    await engine.submit('a', 'k', null);
    store.writesLeft = 1;
    timers.after(3000, () => (store.writesLeft = Infinity));
    await timers.until(() => hasEnded(engine.find('a')!));
    expect(engine.find('a')).toMatchObject({ status: 'done', error: null });
    await engine.close();
  });
});

import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { addressGroup, PendingClients } from './pending-clients.ts';

describe('addressGroup', () => {
  test.each([
    ['10.0.0.1', '10.0.0.1'],
    ['::ffff:10.0.0.1', '10.0.0.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
    ['2001:db8:1:2:9::6', '2001:db8:1:2'],
    ['2001:db8::1', '2001:db8:0:0'],
    ['::1', '0:0:0:0'],
    ['fe80::', 'fe80:0:0:0'],
    ['?', '?'],
  ])('%s', (address, group) => expect(addressGroup(address)).toBe(group));
});

describe('PendingClients', () => {
  const never = () => false;

  test('has the oldest of the most numerous give way', () => {
    const pending = new PendingClients<string>();
    pending.add('a1', 'a');
    pending.add('b1', 'b');
    pending.add('b2', 'b');
    expect(pending.victim(never)).toBe('b1');
    expect(pending.victim((client) => client === 'b1')).toBe('b2');
    expect(pending.victim(() => true)).toBe('b1');
    pending.delete('b1');
    pending.delete('b2');
    expect(pending.victim(never)).toBe('a1');
    pending.delete('a1');
    expect(pending.victim(never)).toBeUndefined();
    expect(pending.size).toBe(0);
  });

  test('keeps count through any changes', () => {
    const step = fc.record({ client: fc.nat(30), address: fc.nat(4), adds: fc.boolean() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const pending = new PendingClients<number>();
        const model = new Map<number, string>();
        for (const { client, address, adds } of steps) {
          if (adds) {
            pending.add(client, `h${address}`);
            if (!model.has(client)) model.set(client, `h${address}`);
          } else {
            pending.delete(client);
            model.delete(client);
          }
          expect(pending.size).toBe(model.size);
          expect([...pending.oldest()]).toEqual([...model.keys()]);
          const counts = new Map<string, number>();
          for (const host of model.values()) counts.set(host, (counts.get(host) ?? 0) + 1);
          const victim = pending.victim(never);
          if (model.size === 0) {
            expect(victim).toBeUndefined();
            continue;
          }
          const host = model.get(victim!)!;
          expect(counts.get(host)).toBe(Math.max(...counts.values()));
          expect(victim).toBe([...model].find(([, other]) => other === host)![0]);
        }
      }),
    );
  });
});

import { expect, test } from 'vitest';
import { ChargeClass, Meter, countedDatabases, otherTenants } from './meter.ts';

function newMeter(maxTenants?: number): Meter {
  return new Meter({ plane: 'redis', run: 'a', ...(maxTenants !== undefined && { maxTenants }) });
}

function chargeOne(meter: Meter, tenant: number, lru: number, database = 0): void {
  meter.account(tenant).charge(ChargeClass.read, database, false, lru, lru, 1, 0, 2);
}

test('keeps what a tenant spent by class, dimension and database', () => {
  const meter = newMeter();
  const account = meter.account(7);
  account.charge(ChargeClass.read, 0, false, 1, 1, 2, 3, 4);
  account.charge(ChargeClass.read, 1, true, 2, 1, 2, 3, 4);
  account.charge(ChargeClass.write, 1, false, 4, 0.5, 0, 0, 0);
  account.addBytes(10, 20);
  account.reject();
  expect(account.usage()).toMatchObject({
    tenant: 7,
    requests: 3,
    errors: 1,
    rejected: 1,
    lru: 7,
    bytesIn: 10,
    bytesOut: 20,
    classes: {
      read: { requests: 2, errors: 1, lru: 3, pru: [2, 4, 6, 8] },
      write: { requests: 1, errors: 0, lru: 4, pru: [0.5, 0, 0, 0] },
      background: { requests: 0, lru: 0 },
    },
  });
  expect(account.usage().databases.slice(0, 2)).toEqual([1, 6]);
});

test('databases beyond those counted one by one are counted together', () => {
  const meter = newMeter();
  for (const database of [0, 3, countedDatabases, countedDatabases + 1000]) {
    chargeOne(meter, 1, 1, database);
  }
  const { databases } = meter.account(1).usage();
  expect(databases).toHaveLength(countedDatabases + 1);
  expect(databases[3]).toBe(1);
  expect(databases[countedDatabases]).toBe(2);
});

test('the last second is over a second later', () => {
  const meter = newMeter();
  chargeOne(meter, 1, 5);
  chargeOne(meter, 1, 5);
  expect(meter.account(1).lastSecondLru).toBe(0);
  expect(meter.tick()).toHaveLength(1);
  expect(meter.account(1).lastSecondLru).toBe(10);
  chargeOne(meter, 1, 3);
  meter.tick();
  expect(meter.account(1)).toMatchObject({ lastSecondLru: 3, lastSecondRequests: 1 });
  expect(meter.tick()).toHaveLength(0);
  expect(meter.account(1).lastSecondLru).toBe(0);
});

test('tenants beyond the bound share an account', () => {
  const meter = newMeter(2);
  for (const tenant of [1, 2, 3, 4]) chargeOne(meter, tenant, 1);
  expect(meter.account(4).tenant).toBe(otherTenants);
  expect(meter.account(3).lru).toBe(2);
  expect([...meter.all()]).toHaveLength(3);
});

test('a snapshot has what changed after an earlier one', () => {
  const meter = newMeter();
  chargeOne(meter, 1, 1);
  chargeOne(meter, 2, 1);
  meter.tick();
  const first = meter.snapshot(1000);
  expect(first.accounts.map(({ tenant }) => tenant)).toEqual([1, 2]);
  for (let i = 0; i < 3; i++) meter.tick();
  const second = meter.snapshot(2000, first.sequence);
  meter.tick();
  meter.tick();
  chargeOne(meter, 2, 1);
  const third = meter.snapshot(3000, second.sequence);
  expect(third.sequence).toBeGreaterThan(second.sequence);
  expect(third.accounts).toMatchObject([{ tenant: 2, lru: 2 }]);
  // An unknown snapshot returns everything.
  expect(meter.snapshot(4000, 999).accounts).toHaveLength(2);
});

test('a change between two snapshots is never left out, whenever seconds end', () => {
  const meter = newMeter();
  let seen = 0;
  let since = 0;
  let spent = 0;
  for (let i = 0; i < 200; i++) {
    if (i % 3 !== 0) {
      chargeOne(meter, 1, 1);
      spent++;
    }
    if (i % 4 === 0) meter.tick();
    if (i % 5 !== 2) continue;
    const { sequence, accounts } = meter.snapshot(i, since);
    since = sequence;
    seen = accounts[0]?.lru ?? seen;
    expect(seen).toBe(spent);
  }
});

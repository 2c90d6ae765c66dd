import { expect, test } from 'vitest';
import { ErrorDelay } from '../../admission/error-delay.ts';
import { admissionDefaults } from '../../admission/admission-rules.ts';
import type { TenantLimiter } from '../../admission/tenant-limiter.ts';
import type { CommandEntry } from '../commands/registry.ts';
import { CommandWait } from './command-wait.ts';
import { refusedInARow, Refusals } from './refusals.ts';

const entry = {} as CommandEntry;
const admission = { rules: admissionDefaults, errorDelay: new ErrorDelay({ enabled: false }) };
const commandBytes = 10;
const receivedBytes = 1_000_000 * commandBytes;

/** A client that has sent a long pipeline, of which each command is over the quota. */
class FloodingClient {
  now = 1000;
  refused = 0;
  readonly #at: { limiter: TenantLimiter; refusals: Refusals };
  readonly #wait: CommandWait;

  constructor(refusals: Refusals) {
    const limiter = { name: 'red', wait: () => {}, leave: () => true } as unknown as TenantLimiter;
    this.#at = { limiter, refusals };
    this.#wait = new CommandWait(
      () => this.#refuse(),
      () => 'server',
    );
  }

  #refuse(): void {
    this.#wait.refused(this.#at.refusals, this.now);
    this.refused++;
  }

  /** Goes on until a command has to wait; then it is as late as that may. Returns how long it was. */
  goOn(): number {
    for (;;) {
      const bytes = { done: (this.refused + 1) * commandBytes, received: receivedBytes };
      if (this.#wait.begin(this.#at, entry, admission, bytes, this.now, true)) break;
      this.#refuse();
    }
    const waited = this.#wait.deadline - this.now;
    this.now = this.#wait.deadline;
    this.#wait.end(false);
    return waited;
  }
}

test('the first command of a pipeline waits its time, and the rest is refused several at a time', () => {
  const client = new FloodingClient(new Refusals());
  expect(client.goOn()).toBe(admissionDefaults.commandWaitMs);
  expect(client.refused).toBe(1);
  const began = client.now;
  let most = 0;
  while (client.refused < 40_000) {
    const before = client.refused;
    client.goOn();
    most = Math.max(most, client.refused - before);
  }
  const perSecond = (1000 * client.refused) / (client.now - began);
  expect(perSecond).toBeGreaterThan(0.9 * 20_000);
  expect(perSecond).toBeLessThan(1.1 * 20_000);
  expect(most).toBeGreaterThanOrEqual(refusedInARow);
});

test('what a flood of one client takes of the refusals another one of the tenant does not have', () => {
  const refusals = new Refusals();
  const [one, other] = [new FloodingClient(refusals), new FloodingClient(refusals)];
  for (const client of [one, other]) client.goOn();
  const began = one.now;
  // In order of time, as they are released.
  while (Math.min(one.now, other.now) < began + 10_000) (one.now <= other.now ? one : other).goOn();
  const took = Math.max(one.now, other.now) - began;
  expect((1000 * (one.refused + other.refused)) / took).toBeLessThan(1.1 * 20_000);
  expect(one.refused / other.refused).toBeGreaterThan(0.9);
  expect(one.refused / other.refused).toBeLessThan(1.1);
});

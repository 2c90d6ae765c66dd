// The slots of the processor, of which one tenant holds 90 % at most, whatever its quota: those within theirs then find
// one free even while the largest tenant floods the pod (ABase, section 4.3, rule 3).

import type { CpuSlots } from './cpu-slots.ts';
import type { Places } from '../../../storage-node/admission/places.ts';
import { SlotBalance } from '../../../storage-node/admission/slot-balance.ts';

export interface TenantCapOptions {
  /** Of all slots, for one tenant. */
  most: number;
  /** What a tenant held beyond it is forgotten after so long, ms. */
  windowMs: number;
  /**
   * A tenant whom nobody else has been beside for so long, ms, may have all slots. With Infinity it never may,
   * as the rule has it by the letter.
   */
  aloneMs: number;
}

export const tenantCapDefaults: TenantCapOptions = { most: 0.9, windowMs: 100, aloneMs: 1000 };

export class CpuPlaces implements Places {
  readonly #slots: CpuSlots | undefined;
  readonly #cap: TenantCapOptions | undefined;
  readonly #tenants = new Map<number, SlotBalance>();
  #used = 0;
  /** Who asked last and when, and when anybody else did. */
  #lastTenant = -1;
  #lastAt = -Infinity;
  #otherAt = -Infinity;

  /** Without slots there is always a place; without a cap one tenant may have all. */
  constructor(slots: CpuSlots | undefined, cap: TenantCapOptions | undefined) {
    this.#slots = slots;
    this.#cap = slots && cap;
  }

  get count(): number {
    return this.#slots?.slots ?? Infinity;
  }

  get used(): number {
    return this.#used;
  }

  hasRoom(): boolean {
    return this.#used < this.count;
  }

  mayTake(tenant: number, now: number): boolean {
    const cap = this.#cap;
    if (cap === undefined) return true;
    const otherAt = tenant === this.#lastTenant ? this.#otherAt : this.#lastAt;
    if (now - otherAt > cap.aloneMs) return true;
    return this.#balanceOf(tenant, cap, now).mayHold(now);
  }

  asked(tenant: number, now: number): void {
    if (tenant !== this.#lastTenant) {
      this.#otherAt = this.#lastAt;
      this.#lastTenant = tenant;
    }
    this.#lastAt = now;
  }

  began(tenant: number, now: number): void {
    this.#used++;
    this.#slots?.take();
    if (this.#cap !== undefined) this.#balanceOf(tenant, this.#cap, now).began(now);
  }

  ended(tenant: number, now: number): void {
    this.#used--;
    this.#slots?.free();
    this.#tenants.get(tenant)?.ended(now);
  }

  forget(tenant: number): void {
    if (this.#tenants.get(tenant)?.held === 0) this.#tenants.delete(tenant);
  }

  #balanceOf(tenant: number, { most, windowMs }: TenantCapOptions, now: number): SlotBalance {
    const part = most * this.count;
    let balance = this.#tenants.get(tenant);
    if (balance === undefined) {
      balance = new SlotBalance(part, 0, windowMs, now);
      this.#tenants.set(tenant, balance);
    } else balance.reshape(part, now);
    return balance;
  }
}

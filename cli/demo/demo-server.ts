// A server for the demonstration with two tenants, and its admin API.

import { AdminClient } from '../commands/admin-client.ts';
import type { AdmissionView } from '../output/admission-view.ts';
import type { Target } from './load/load-messages.ts';
import { OwnServer, type OwnServerOptions } from '../own-server.ts';

export type Plane = 'redis' | 'influx';

/** A tenant's use of a plane. */
export interface Use {
  /** Monotonic milliseconds. */
  at: number;
  /** Request units since the server was started. */
  ru: number;
  /** Requests and queries that wait for units now, and that have been refused since the limit came. */
  waiting: number;
  refused: number;
}

const minuteMs = 60_000;

export class DemoServer {
  readonly process: OwnServer;
  readonly admin: AdminClient;
  readonly #from = Math.floor(Date.now() / minuteMs) * minuteMs;

  private constructor(server: OwnServer) {
    this.process = server;
    this.admin = new AdminClient({ url: server.adminUrl, token: server.adminToken });
  }

  static async start(options: Omit<OwnServerOptions, 'purpose'>): Promise<DemoServer> {
    const flags = ['--log.level', 'error', ...options.flags];
    return new DemoServer(await OwnServer.start({ ...options, flags, purpose: 'demo' }));
  }

  /** Its password is its name. */
  async makeTenant(name: string): Promise<void> {
    await this.admin.request('POST', '/v1/tenants', { name, password: name });
  }

  target(plane: Plane, name: string): Target {
    return { port: this.process.portOf(plane), name, password: name };
  }

  /** 0 for no limit. */
  async setQuota(name: string, ruPerSecond: number): Promise<void> {
    const limits = { ruPerSecond: Math.round(ruPerSecond) };
    await this.admin.request('PATCH', `/v1/tenants/${name}`, { limits });
  }

  async set(settings: Readonly<Record<string, string | number>>): Promise<void> {
    await this.admin.request('PATCH', '/v1/config', settings);
  }

  async use(plane: Plane, name: string): Promise<Use> {
    const asked = performance.now();
    const { usage } = await this.admin.get<{ usage: { ru: number }[] }>('/v1/ru', {
      tenant: name,
      plane,
      from: this.#from,
    });
    // The count was taken at some time in between.
    const at = (asked + performance.now()) / 2;
    const { admission } = await this.admin.get<{ admission: AdmissionView[] }>('/v1/admission', {
      tenant: name,
      plane,
    });
    const of = admission[0];
    return {
      at,
      ru: usage[0]?.ru ?? 0,
      waiting: (of?.waiting ?? 0) + (of?.waitingQueries ?? 0),
      refused: of?.refused ?? 0,
    };
  }

  async stop(): Promise<void> {
    await this.process.stop();
  }
}

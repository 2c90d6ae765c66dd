// Attacks on logins, tenants and stored state.

import { mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Attack, Target } from './attack.ts';
import { aclRules } from './payloads.ts';
import { http, Wire } from './wire.ts';

async function admin(
  { admin: url, adminToken }: Target,
  method: string,
  path: string,
  body?: object,
): Promise<unknown> {
  const response = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const answer: unknown = await response.json();
  if (response.status >= 400) throw new Error(`${method} ${path}: ${JSON.stringify(answer)}`);
  return answer;
}

async function makeTenants(target: Target): Promise<void> {
  for (const name of ['attacker', 'victim']) {
    await admin(target, 'POST', '/v1/tenants', { name, password: `${name}-secret` });
  }
}

async function loggedIn({ redisPort }: Target, tenant: string): Promise<Wire> {
  const client = await Wire.connect(redisPort);
  const answer = await client.ask('AUTH', tenant, `${tenant}-secret`);
  if (answer !== '+OK') throw new Error(`${tenant} cannot log in: ${answer}`);
  return client;
}

async function isAudited(target: Target, path: string): Promise<boolean> {
  for (let after = 0; ; ) {
    const page = `/v1/audit?after=${after}&limit=1000`;
    const { audit } = (await admin(target, 'GET', page)) as {
      audit: { seq: number; path: string }[];
    };
    if (audit.some((record) => record.path === path)) return true;
    if (audit.length === 0) return false;
    after = Math.max(...audit.map(({ seq }) => seq));
  }
}

/** Longest time that a login of the other tenant may take. A hash alone takes some 60 ms. */
const loginWithinMs = 500;

export const loginAttacks: readonly Attack[] = [
  {
    name: 'audit-flood',
    what: 'a tenant that changes a user 2,500 times with large rules',
    prepare: makeTenants,
    run: async (target) => {
      const client = await loggedIn(target, 'attacker');
      const rules = aclRules(60_000);
      for (let n = 0; n < 250 && !client.closed; n++) {
        await client.ask('ACL', 'SETUSER', 'u', 'reset', ...rules);
      }
      client.close();
    },
    verdict: async (target) => {
      await admin(target, 'PATCH', '/v1/tenants/victim/limits', { keys: 1_000_000 });
      const client = await loggedIn(target, 'attacker');
      const rules = aclRules(60_000);
      for (let n = 0; n < 2500 && !client.closed; n++) {
        await client.ask('ACL', 'SETUSER', 'u', 'reset', ...rules);
      }
      client.close();
      return (await isAudited(target, '/v1/tenants/victim/limits'))
        ? undefined
        : "another tenant's record is gone";
    },
  },
  {
    name: 'password-queue',
    what: 'a tenant that has 20 passwords hashed on each of 60 connections',
    prepare: makeTenants,
    run: async (target) => {
      const clients = await Promise.all(
        Array.from({ length: 60 }, () => loggedIn(target, 'attacker')),
      );
      const passwords = Array.from({ length: 20 }, (_, n) => `>p${n}`);
      const asked = clients.map((client, n) => client.ask('ACL', 'SETUSER', `u${n}`, ...passwords));
      await new Promise((resolve) => setTimeout(resolve, 100));
      await Promise.all(asked);
      for (const client of clients) client.close();
    },
    verdict: async (target) => {
      const clients = await Promise.all(
        Array.from({ length: 60 }, () => loggedIn(target, 'attacker')),
      );
      const passwords = Array.from({ length: 20 }, (_, n) => `>q${n}`);
      const asked = clients.map((client, n) => client.ask('ACL', 'SETUSER', `u${n}`, ...passwords));
      let longestMs = 0;
      // A password that is not known from before: a wrong one, each time another.
      for (let n = 0; n < 10; n++) {
        const client = await Wire.connect(target.redisPort);
        const began = performance.now();
        await client.ask('AUTH', 'victim', 'victim-secret');
        longestMs = Math.max(longestMs, performance.now() - began);
        client.close();
      }
      await Promise.all(asked);
      for (const client of clients) client.close();
      if (longestMs <= loginWithinMs) return undefined;
      return `a login of another tenant took ${Math.round(longestMs)} ms`;
    },
  },
  {
    name: 'wrong-passwords',
    what: '20 clients that try wrong passwords of another tenant',
    prepare: makeTenants,
    run: async (target) => {
      await Promise.all(
        Array.from({ length: 20 }, async (_, n) => {
          const client = await Wire.connect(target.redisPort);
          for (let i = 0; i < 2; i++) await client.ask('AUTH', 'attacker', `wrong-${n}-${i}`);
          client.close();
        }),
      );
    },
    verdict: async (target) => {
      const client = await Wire.connect(target.redisPort);
      const began = performance.now();
      const answer = await client.ask('AUTH', 'victim', 'victim-secret');
      const ms = performance.now() - began;
      client.close();
      if (answer !== '+OK') return `another tenant's login was answered ${answer}`;
      return ms <= loginWithinMs
        ? undefined
        : `another tenant's login took ${Math.round(ms)} ms, from the same address`;
    },
  },
  {
    name: 'made-up-credentials',
    what: 'InfluxDB requests with credentials that nobody has, beside users with passwords',
    prepare: makeTenants,
    run: async ({ influxPort }) => {
      for (let n = 0; n < 100; n++) {
        await http(influxPort, { path: `/query?q=SHOW+DATABASES&u=nobody${n}&p=x` });
        await http(influxPort, {
          path: '/query?q=SHOW+DATABASES',
          headers: { Authorization: `Token made-up-${n}` },
        });
      }
    },
    verdict: async (target) => {
      const asked = async (): Promise<number> => {
        const path = '/query?q=SHOW+DATABASES&u=nobody&p=x';
        return (await http(target.influxPort, { path })).status;
      };
      if ((await asked()) === 200) return 'wrong credentials were let in';
      for (const name of ['attacker', 'victim']) {
        await admin(target, 'DELETE', `/v1/tenants/${name}`);
      }
      return (await asked()) === 200
        ? 'wrong credentials were let in once the last tenant was dropped'
        : undefined;
    },
  },
  {
    name: 'readable-files',
    what: 'a data directory that anybody may read when the server first starts',
    directoryMode: 0o755,
    run: async () => {
      await new Promise((resolve) => setTimeout(resolve, 100));
    },
    verdict: async ({ directory }) => {
      const open = [directory, ...filesUnder(directory)].find(
        (path) => (statSync(path).mode & 0o077) !== 0,
      );
      // In a directory that others may not enter the modes of files do not matter.
      const isClosed = (statSync(directory).mode & 0o077) === 0;
      return open === undefined || isClosed ? undefined : `${open} can be read by other users`;
    },
  },
];

function filesUnder(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.parentPath.includes('metadata'))
    .map(({ parentPath, name }) => join(parentPath, name));
}

/** A folder as an administrator might have made it. */
export function makeDirectory(path: string, mode: number): void {
  mkdirSync(path, { recursive: true, mode });
}

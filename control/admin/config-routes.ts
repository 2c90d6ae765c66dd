import type { FastifyInstance } from 'fastify';
import { BadRequest } from './answers.ts';
import type { ConfigView } from './config-view.ts';
import { addRoute } from './route.ts';
import * as schema from './schemas.ts';

export function configRoutes(app: FastifyInstance, config: ConfigView): void {
  addRoute(
    app,
    {
      method: 'GET',
      url: '/v1/config',
      access: 'observe',
      summary: 'Settings, and where each has its value from.',
      answer: schema.listOf('settings', schema.setting),
    },
    () => ({ settings: config.list() }),
  );

  addRoute<Record<string, string | number>>(
    app,
    {
      method: 'PATCH',
      url: '/v1/config',
      access: 'operate',
      summary: 'Change settings that can be changed while the server runs; all of them or none.',
      body: schema.settingChange,
      answer: schema.listOf('settings', schema.setting),
      hidden: (body) => {
        const secrets = config.list().filter(({ secret }) => secret);
        return Object.keys(body).filter((name) => secrets.some(({ key }) => key === name));
      },
    },
    ({ body }) => {
      const changes = Object.entries(body).map(([key, value]) => [key, String(value)] as const);
      for (const [key, value] of changes) {
        const problem = config.check(key, value);
        if (problem !== undefined) throw new BadRequest(problem);
      }
      for (const [key, value] of changes) config.change(key, value);
      return { settings: config.list() };
    },
  );
}

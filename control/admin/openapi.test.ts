// The OpenAPI document: whether it is one, and whether it tells what is there.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { realDisk } from '../../storage-node/disk/real-disk.ts';
import { AdminFixture } from './admin-fixture.ts';

interface Operation {
  operationId: string;
  summary: string;
  security: object[];
  parameters: { name: string; in: string; required?: boolean; schema: object }[];
  requestBody?: { content: Record<string, { schema: SchemaObject }> };
  responses: Record<string, { $ref?: string; content?: Record<string, { schema: SchemaObject }> }>;
}

interface SchemaObject {
  type?: string | string[];
  enum?: unknown[];
  required?: string[];
  properties?: Record<string, SchemaObject>;
  additionalProperties?: boolean | SchemaObject;
  items?: SchemaObject;
}

interface Document {
  openapi: string;
  info: { title: string; version: string };
  paths: Record<string, Record<string, Operation>>;
  components: Record<string, Record<string, object>>;
}

let admin: AdminFixture;
let document: Document;
let operations: (Operation & { path: string; method: string })[];

beforeAll(async () => {
  admin = await AdminFixture.start(realDisk);
  await admin.addTenants();
  document = (await admin.ask('GET', '/v1/openapi.json')).json() as Document;
  operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ ...operation, path, method })),
  );
});
afterAll(() => admin.close());

test('it is an OpenAPI 3.1 document', () => {
  expect(document).toMatchObject({ openapi: '3.1.0', info: { version: '1.2.3' } });
  expect(operations.length).toBeGreaterThan(35);
  const ids = operations.map(({ operationId }) => operationId);
  expect(new Set(ids).size).toBe(ids.length);
  for (const {
    path,
    method,
    parameters,
    responses,
    security,
    summary,
    requestBody,
  } of operations) {
    const where = `${method} ${path}`;
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    const declared = parameters.filter((one) => one.in === 'path');
    expect(
      declared.map(({ name }) => name),
      where,
    ).toEqual(inPath);
    expect(
      declared.every(({ required }) => required === true),
      where,
    ).toBe(true);
    expect(Object.keys(responses).sort()[0], where).toMatch(/^20[012]$/);
    expect(responses['default'], where).toBeDefined();
    expect(summary.length, where).toBeGreaterThan(5);
    if (path.startsWith('/v1/')) expect(security, where).toEqual([{ token: [] }]);
    if (method === 'get' || method === 'delete') expect(requestBody, where).toBeUndefined();
  }
});

test('what it refers to is there', () => {
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)];
  expect(references.length).toBeGreaterThan(35);
  for (const [, reference] of references) {
    let at: unknown = document;
    for (const part of reference!.split('/')) at = (at as Record<string, unknown>)[part];
    expect(at, reference).toBeDefined();
  }
});

test('nobody gets to see a secret by the document', () => {
  for (const { responses } of operations) {
    expect(JSON.stringify(responses)).not.toMatch(/"(secrets|digest)"/);
  }
});

/** Where a value is not as its schema says. */
function misfits(value: unknown, schema: SchemaObject, at = ''): string[] {
  const types = [schema.type ?? []].flat();
  const type =
    value === null
      ? 'null'
      : Array.isArray(value)
        ? 'array'
        : Number.isInteger(value)
          ? 'integer'
          : typeof value;
  const fits = types.includes(type) || (type === 'integer' && types.includes('number'));
  if (types.length > 0 && !fits) return [`${at} is ${type}, not ${types.join(' or ')}`];
  if (schema.enum && !schema.enum.includes(value)) return [`${at} is ${String(value)}`];
  if (Array.isArray(value)) {
    return value.flatMap((item, i) => misfits(item, schema.items ?? {}, `${at}[${i}]`));
  }
  if (typeof value !== 'object' || value === null) return [];
  const { properties = {}, required = [], additionalProperties = true } = schema;
  const missing = required
    .filter((name) => !(name in value))
    .map((name) => `${at}.${name} is missing`);
  const wrong = Object.entries(value).flatMap(([name, member]) => {
    const of = properties[name] ?? additionalProperties;
    if (of === false) return [`${at}.${name} is not in the schema`];
    return of === true ? [] : misfits(member, of, `${at}.${name}`);
  });
  return [...missing, ...wrong];
}

test.each([
  ['GET', '/v1/tenants'],
  ['POST', '/v1/tenants', { name: 'farm' }],
  ['GET', '/v1/tenants/{tenant}'],
  ['PATCH', '/v1/tenants/{tenant}', { limits: { keys: 3 } }],
  ['GET', '/v1/tenants/{tenant}/limits'],
  ['POST', '/v1/tenants/{tenant}/users', { name: 'ann' }],
  ['GET', '/v1/tenants/{tenant}/users'],
  ['POST', '/v1/tenants/{tenant}/tokens', {}],
  ['GET', '/v1/tenants/{tenant}/tokens'],
  ['POST', '/v1/tokens', { role: 'viewer' }],
  ['GET', '/v1/tokens'],
  ['GET', '/v1/whoami'],
  ['POST', '/v1/tenants/{tenant}/databases', { name: 'metrics' }],
  ['GET', '/v1/tenants/{tenant}/databases'],
  ['POST', '/v1/tables', { table: 'shop/1', readOnly: true }],
  ['GET', '/v1/tables'],
  ['GET', '/v1/tenants/{tenant}/tables'],
  ['GET', '/v1/ru'],
  ['GET', '/v1/top'],
  ['GET', '/v1/admission'],
  ['GET', '/v1/slowlog'],
  ['GET', '/v1/steps'],
  ['GET', '/v1/config'],
  ['PATCH', '/v1/config', { 'log.level': 'debug' }],
  ['GET', '/v1/audit'],
  ['GET', '/'],
  ['GET', '/livez'],
  ['DELETE', '/v1/tenants/{tenant}'],
] as [string, string, object?][])('%s %s answers as it says', async (method, path, body) => {
  const operation = document.paths[path]![method.toLowerCase()]!;
  const answer = await admin.ask(method, path.replace('{tenant}', 'shop'), body);
  const said = operation.responses[answer.status]?.content?.['application/json']?.schema;
  expect(said, answer.text).toBeDefined();
  expect(misfits(answer.json(), said!)).toEqual([]);
});

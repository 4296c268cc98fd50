import { randomUUID } from 'node:crypto';
import { type OpenApi, ROUTES } from '@presign/issuer';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { send } from './ask.ts';

let upstream: Upstream;
let stack: Stack;
beforeAll(async () => {
  upstream = await startUpstream();
  stack = await startStack({ providers: { openai: { base_url: upstream.url } } });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

/** Something that is created, and where it is read. */
const CREATED: readonly (readonly [path: string, body: object])[] = [
  ['/v1/budgets', { scope: { external_user: randomUUID() }, cost_limit: 5 }],
  ['/v1/virtual-keys', { name: 'a', provider: 'openai', key: 'sk-a', budget: { cost_limit: 5 } }],
  ['/v1/api-keys', { name: 'a', scopes: ['read'] }],
  ['/v1/accounts', { name: 'a' }],
  ['/v1/webhooks', { url: 'https://hooks.example/a' }],
  ['/v1/webhooks', { url: 'https://hooks.example/a', format: 'slack' }],
  ['/v1/alerts', { name: 'a', condition: { spend: { window: 'day', amount: 1 } } }],
];

describe.each(CREATED)('POST %s', (path, body) => {
  test('answers 201 with the same ETag as GET and a repeated request, and a change requires it', async () => {
    const headers = { 'idempotency-key': randomUUID() };
    const made = await send(stack, { path, body, headers });
    expect(made.status, made.text).toBe(201);
    const { id } = JSON.parse(made.text) as { id: string };
    const again = await send(stack, { path, body, headers });
    const read = await send(stack, { method: 'GET', path: `${path}/${id}` });
    const etags = [made, again, read].map((each) => each.headers.get('etag'));
    expect(etags).toEqual(['"1"', '"1"', '"1"']);
    const change = path === '/v1/webhooks' ? { description: 'b' } : { name: 'b' };
    const patch = (etag: string) =>
      send(stack, { method: 'PATCH', path: `${path}/${id}`, body: change, headers: { 'if-match': etag } });
    expect((await patch('"7"')).status).toBe(412);
    expect((await patch(etags[0] ?? '')).status).toBe(200);
  });
});

test('every route that creates a thing with a revision documents its ETag', () => {
  const creates = Object.entries(ROUTES).filter(([, { shape }]) => shape.status === 201);
  const without = creates.filter(([, { shape }]) => !shape.etag).map(([name]) => name);
  expect(without).toEqual(['testWebhook', 'testAlert']);
});

describe('an answer', () => {
  /** The schemas of a document, by the path to them. */
  function* schemas(value: unknown, path: string): Generator<[string, Record<string, unknown>]> {
    if (typeof value !== 'object' || value === null) return;
    yield [path, value as Record<string, unknown>];
    for (const [name, each] of Object.entries(value)) yield* schemas(each, `${path}.${name}`);
  }

  test('never has -1, and has times in whole seconds, in every schema', async () => {
    const document = (await (await fetch(`${stack.issuerUrl}/openapi.json`)).json()) as OpenApi;
    const wrong: string[] = [];
    for (const [path, methods] of Object.entries(document.paths ?? {}))
      for (const [method, operation] of Object.entries(methods as object))
        for (const [at, schema] of schemas(operation.responses, `${method} ${path}`)) {
          const { description, type, minimum } = schema as {
            description?: string;
            type?: unknown;
            minimum?: number;
          };
          if (/-1\b.*unlimited/.test(String(description)) || minimum === -1) wrong.push(at);
          if (/Unix time/.test(String(description)) && [type].flat().includes('number')) wrong.push(at);
        }
    expect(wrong).toEqual([]);
  });

  test('of a URL without limits has null for each, at the issuer and at the gateway', async () => {
    const issued = await stack.issue({ provider: 'openai', path: '/v1/models', client_api_key: 'sk-a' });
    const grant = (await send(stack, { method: 'GET', path: `/v1/sessions/${issued.session_id}` })).text;
    expect(JSON.parse(grant).grants[0]).toMatchObject({ max_uses: null, cost_limit: null });
    const own = await fetch(issued.url.replace('/v1/models', ''));
    expect(await own.json()).toMatchObject({ max_uses: null, cost_limit: null });
  });
});

test.each([
  [
    ['model-1'],
    '{"model":"model-2","messages":[]}',
    'model: model-2 is not allowed. This URL allows the model model-1.',
  ],
  [['a', 'b'], '{"messages":[]}', 'model: is not named. This URL allows the models a, b.'],
])('a call of a model other than %j gets an error with one meaning', async (models, body, message) => {
  const { url } = await stack.issue({
    ...{ provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk-a', models },
  });
  const answer = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  expect(answer.status).toBe(403);
  expect(await answer.json()).toMatchObject({
    error: { code: 'model_not_allowed', message: expect.stringContaining(message) },
  });
});

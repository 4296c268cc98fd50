import { spawnSync } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describeApi, ROUTES } from '@presign/issuer';
import { Validator } from '@seriousme/openapi-schema-validator';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { api, faultOf, undocumented } from '../harness/documented.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { addAccount, addApiKey, ownAccount } from './accounts.ts';
import { refused, send } from './ask.ts';
import { bodyOf, fieldsOf, operations, pathOf, schemasIn, scopeOf } from './document.ts';

let stack: Stack;
let powerless: string;

beforeAll(async () => {
  stack = await startStack({ providers: {} });
  powerless = await addApiKey(stack, await ownAccount(stack), { scopes: [] });
});
afterAll(() => stack.close());

const named = operations.map((each) => [each.operation.operationId, each] as const);

describe('the document', () => {
  test('is valid OpenAPI 3.1', async () => {
    const validator = new Validator();
    const result = await validator.validate(JSON.parse(JSON.stringify(api)));
    expect(result.errors).toBeUndefined();
    expect([result.valid, validator.version]).toEqual([true, '3.1']);
  });

  test('is served at /openapi.json to everyone, with the address of its issuer', async () => {
    const answer = await fetch(`${stack.issuerUrl}/openapi.json`);
    expect(answer.headers.get('content-type')).toBe('application/json');
    expect(await answer.json()).toEqual(JSON.parse(JSON.stringify(describeApi(ROUTES, stack.issuerUrl))));
  });

  test('is stored as docs/reference/openapi.json, the output of docs/generate-openapi.ts', () => {
    const docs = new URL('../../docs/', import.meta.url);
    const script = fileURLToPath(new URL('generate-openapi.ts', docs));
    const printed = spawnSync(process.execPath, ['--import', 'tsx', script], { encoding: 'utf8' });
    expect([printed.status, printed.stderr]).toEqual([0, '']);
    expect(readFileSync(new URL('reference/openapi.json', docs), 'utf8')).toBe(printed.stdout);
  });

  test("has the release's version", () => {
    const release = JSON.parse(
      readFileSync(new URL('../../apps/issuer/package.json', import.meta.url), 'utf8'),
    ) as { version: string };
    expect(api.info.version).toBe(release.version);
  });

  test('gives every operation a unique name', () => {
    const names = named.map(([name]) => name);
    expect(new Set(names).size).toBe(names.length);
    for (const name of names) expect(name).toMatch(/^[a-z][A-Za-z]+$/);
  });

  test('has a name for every type, so that generators invent none', () => {
    const names = Object.keys(api.components.schemas);
    for (const name of names) expect(name).toMatch(/^[A-Z][A-Za-z]{2,29}$/);
    expect([...unnamed(api.components.schemas), ...unnamed(api.paths)]).toEqual([]);
  });

  test.each(named)(
    'has an example of the body of %s and of its answer, which match their schemas',
    (_name, { operation }) => {
      const success = Object.entries(operation.responses).filter(([status]) => status.startsWith('2'));
      const contents = [operation.requestBody?.content, ...success.map(([, answer]) => contentOf(answer))];
      for (const content of contents) {
        if (!content) continue;
        const { schema, example } = content['application/json'] ?? {};
        expect(example).toBeDefined();
        expect(faultOf(schema ?? {}, example)).toBeUndefined();
      }
    },
  );

  test.each(named)('describes every field that %s takes', (_name, { operation }) => {
    const undescribed = fieldsOf(operation).filter(({ described }) => !described);
    expect(undescribed.map(({ name }) => name)).toEqual([]);
  });

  test('marks the secrets of requests, and nothing else, so that forms hide them', () => {
    const secrets = operations.flatMap(({ operation }) =>
      fieldsOf(operation).flatMap(({ name, secret }) => (secret ? [`${operation.operationId} ${name}`] : [])),
    );
    expect(secrets).toEqual([
      'presign client_api_key',
      'mcpPresign servers.auth_config.token',
      'mcpPresign servers.auth_config.key',
      'mcpPresign servers.auth_config.access_token',
      'mcpPresign servers.auth_config.client_secret',
      'mcpPresign servers.auth_config.refresh_token',
      'createVirtualKey key',
      'rotateVirtualKey key',
    ]);
  });

  test('has only examples that match their schemas', () => {
    const examples = schemasIn(api).flatMap((schema) =>
      (schema.examples ?? []).map((example) => ({ schema, example })),
    );
    expect(examples.length).toBeGreaterThan(0);
    for (const { schema, example } of examples) {
      expect(faultOf(schema, example), JSON.stringify(example)).toBeUndefined();
    }
  });
});

test('the check of answers detects an undocumented one', () => {
  const headers = new Headers({ 'content-type': 'application/json', 'x-request-id': randomUUID() });
  const answer = api.components.schemas.PresignAnswer?.examples?.[0] as object;
  const judge = (changed: object) =>
    undocumented({
      method: 'POST',
      path: '/v1/presign',
      status: 200,
      headers,
      text: JSON.stringify(answer),
      ...changed,
    });
  const error = (code: string) =>
    JSON.stringify({
      error: { code, message: 'A.', type: 'api_error', param: null, request_id: randomUUID() },
    });
  expect(judge({})).toBeUndefined();
  expect(judge({ status: 500, text: error('internal_error') })).toBeUndefined();
  const wrong: object[] = [
    { status: 201 },
    { status: 402, text: error('cost_limit_reached') },
    { status: 500, text: error('limits_unavailable') },
    { status: 500, text: '{"error":"internal_error"}' },
    { text: JSON.stringify({ ...answer, more: 1 }) },
    { text: JSON.stringify({ ...answer, expires_at: '1' }) },
    { text: JSON.stringify({ ...answer, session_id: 'x' }) },
    { headers: new Headers({ 'content-type': 'text/html', 'x-request-id': randomUUID() }) },
    { headers: new Headers({ 'content-type': 'application/json' }) },
    { path: '/v1/nowhere' },
  ];
  for (const each of wrong) expect(judge(each), JSON.stringify(each)).toBeDefined();
});

describe('an operation answers as documented', () => {
  const withBody = named.filter(([, { operation }]) => operation.requestBody);
  const withId = named.filter(([, { path }]) => path.includes('{'));
  const guarded = named.filter(([, { operation }]) => scopeOf(operation) !== undefined);

  test.each(withBody)('%s does what its example requests', async (_name, place) => {
    const example = bodyOf(place.operation)?.examples?.[0];
    expect(example, 'an example').toBeDefined();
    const sent = await send(stack, {
      method: place.method,
      path: pathOf(place, {}),
      body: example as object,
    });
    // The id in the path need not exist.
    if (place.path.includes('{')) expect(sent.status).toBe(404);
    else expect(sent.status, sent.text).toBeLessThan(300);
  });

  test.each(guarded)('%s refuses a request without an API key or without its scope', async (_name, place) => {
    const request = { method: place.method, path: pathOf(place, {}) };
    refused(await send(stack, { ...request, apiKey: undefined }), 'unauthenticated');
    const sent = await send(stack, { ...request, apiKey: powerless });
    expect(refused(sent, 'forbidden')).toContain(`"${scopeOf(place.operation)}"`);
  });

  test.each(withId)('%s returns 404 for an unknown or malformed id', async (_name, place) => {
    const body = bodyOf(place.operation)?.examples?.[0] as object | undefined;
    for (const id of [randomUUID(), 'none', '%00', '%F0%9F%92%A9', '..%2F']) {
      const path = pathOf(place, { id });
      const sent = await send(stack, { method: place.method, path, ...(body && { body }) });
      refused(sent, 'not_found');
    }
  });

  test.each(withBody)(
    '%s refuses a body that is not a JSON object, too long or of another type',
    async (_name, place) => {
      const request = { method: place.method, path: pathOf(place, {}) };
      refused(await send(stack, { ...request, body: '{' }), 'invalid_json');
      const type = { 'content-type': 'text/plain' };
      refused(
        await send(stack, { ...request, body: '{}', headers: type }),
        'unsupported_media_type',
        'Content-Type',
      );
      refused(await send(stack, { ...request, body: ' '.repeat(1_048_577) }), 'body_too_large');
      for (const body of ['[]', 'null', '"x"', '{"no_such_field": 1}']) {
        const { status, text } = await send(stack, { ...request, body });
        expect([status, text]).toEqual([400, expect.stringContaining('"invalid_request"')]);
      }
    },
  );

  const withQuery = named.filter(([, { operation }]) =>
    operation.parameters?.some((each) => each.in === 'query'),
  );
  test.each(withQuery)('%s refuses an unknown or repeated query parameter', async (_name, place) => {
    const path = pathOf(place, {});
    for (const query of [
      'no_such_parameter=1',
      'limit=1&limit=1&from=1&from=1&external_user=a&external_user=a',
    ]) {
      const { status } = await send(stack, { method: place.method, path: `${path}?${query}` });
      expect(status).toBe(400);
    }
  });
});

describe('the page at /docs/api', () => {
  test('runs Scalar and one script of its own, in a sandbox that connects to nothing', async () => {
    const answer = await fetch(`${stack.issuerUrl}/docs/api`);
    const text = await answer.text();
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    const scripts = Array.from(
      text.matchAll(/<script([^>]*)>([\s\S]*?)<\/script>/g),
      ([, tag = '', body = '']) => ({ tag, body }),
    );
    expect(scripts.map(({ tag }) => tag.trim().replace(/ data-configuration="[^"]*"/, ''))).toEqual([
      '',
      'id="api-reference" type="application/json"',
      'src="api/scalar.js"',
    ]);
    const own = createHash('sha256')
      .update(scripts[0]?.body ?? '')
      .digest('base64');
    expect(answer.headers.get('content-security-policy')).toBe(
      `sandbox allow-scripts; default-src 'none'; script-src 'self' 'sha256-${own}'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    );
    expect(answer.headers.has('set-cookie')).toBe(false);
  });

  test('is the same with gzip and without, and so is Scalar', async () => {
    for (const path of ['/docs/api', '/docs/api/scalar.js']) {
      const [zipped, plain] = await Promise.all(
        ['gzip', 'identity'].map((coding) =>
          fetch(`${stack.issuerUrl}${path}`, { headers: { 'accept-encoding': coding } }),
        ),
      );
      expect(zipped?.headers.get('content-encoding')).toBe('gzip');
      expect(plain?.headers.has('content-encoding')).toBe(false);
      expect(await zipped?.text()).toBe(await plain?.text());
    }
  });

  test('has every operation, tag and event of the OpenAPI document', async () => {
    const document = documentIn(await (await fetch(`${stack.issuerUrl}/docs/api`)).text());
    const own = JSON.parse(JSON.stringify(describeApi(ROUTES, stack.issuerUrl)));
    expect(document).toMatchObject({ info: own.info, paths: own.paths, webhooks: own.webhooks });
    expect(document.tags.slice(0, own.tags.length)).toEqual(own.tags);
    expect(document['x-tagGroups'].flatMap(({ tags }) => tags).sort()).toEqual(
      document.tags.map(({ name }) => name).sort(),
    );
  });

  test('is valid OpenAPI 3.1 with the routes of the gateway', async () => {
    const document = documentIn(await (await fetch(`${stack.issuerUrl}/docs/api`)).text());
    const { errors } = await new Validator().validate(document as unknown as Record<string, unknown>);
    expect(errors).toBeUndefined();
  });

  test('describes only routes that the gateway has', async () => {
    const document = documentIn(await (await fetch(`${stack.issuerUrl}/docs/api`)).text());
    const routes = Object.entries(document.paths).filter(([, { servers }]) => servers !== undefined);
    expect(routes.length).toBeGreaterThan(3);
    expect((await fetch(`${stack.gatewayUrls[0]}/none`)).status).toBe(404);
    for (const [path, { servers, ...methods }] of routes) {
      expect(servers?.map(({ url }) => url)).toEqual(stack.gatewayUrls.slice(0, 1));
      for (const method of Object.keys(methods)) {
        const address = `${stack.gatewayUrls[0]}${path.replaceAll(/\{\w+\}/g, 'none')}`;
        const answer = await fetch(address, { method, ...(method === 'post' && { body: '{}' }) });
        expect(answer.status, `${method} ${path}: ${await answer.text()}`).not.toBe(404);
      }
    }
  });
});

test('requests built from the examples of the document are accepted', async () => {
  // An account of its own, because an account has one budget for each scope and window.
  const { id } = await addAccount(stack);
  const apiKey = await addApiKey(stack, id, { scopes: ['admin', 'operator'] });
  for (const place of operations) {
    const { method, operation } = place;
    const query = (operation.parameters ?? [])
      .filter((each) => each.in === 'query' && (each.required || exampleOf(each.schema) !== undefined))
      .map(({ name, schema }): [string, string] => [name, String(exampleOf(schema))]);
    const body = bodyOf(operation);
    const answer = await fetch(`${stack.issuerUrl}${pathOf(place, {})}?${new URLSearchParams(query)}`, {
      method,
      headers: { authorization: `Bearer ${apiKey}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(exampleOf(body) ?? {}) }),
    });
    const named = place.path.includes('{');
    expect(`${answer.status}`, `${operation.operationId}: ${await answer.text()}`).toMatch(
      named ? /^(404|2..)$/ : /^2..$/,
    );
  }
});

type Content = Readonly<Record<string, { readonly schema: object; readonly example?: unknown }>>;
const contentOf = (answer: object): Content | undefined =>
  'content' in answer ? (answer.content as Content) : undefined;

/** The places of types that a generator would have to name: entries of lists and maps, and kinds of a value. */
function unnamed(value: unknown, at = ''): string[] {
  if (typeof value !== 'object' || value === null) return [];
  const isType =
    'enum' in value || 'properties' in value || typeof Object(value).additionalProperties === 'object';
  const own = isType && /\/(items|additionalProperties|anyOf\/\d+)$/.test(at) ? [at] : [];
  const inside = Object.entries(value).filter(([key]) => !RULES.has(key));
  return [...own, ...inside.flatMap(([key, each]) => unnamed(each, `${at}/${key}`))];
}
/** Keywords that restrict a type and make none. */
const RULES = new Set(['if', 'then', 'else', 'not', 'allOf', 'examples', 'example', 'default']);

const exampleOf = ({ examples }: { examples?: unknown }): unknown =>
  Array.isArray(examples) ? examples[0] : undefined;

type DocsDocument = {
  readonly tags: { readonly name: string }[];
  readonly paths: Readonly<Record<string, { readonly servers?: { readonly url: string }[] }>>;
  readonly 'x-tagGroups': { readonly tags: string[] }[];
};

/** The document that the page shows. */
const documentIn = (page: string): DocsDocument =>
  JSON.parse(/type="application\/json"[^>]*>([\s\S]*?)<\/script>/.exec(page)?.[1] ?? '');

import { execFile, spawnSync } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describeApi } from '@presign/issuer';
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
    expect(await answer.json()).toEqual(JSON.parse(JSON.stringify(describeApi(stack.issuerUrl))));
  });

  test('is kept as docs/reference/openapi.json, which docs/generate-openapi.ts prints', () => {
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

test('the check of answers finds an undocumented one', () => {
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

  test.each(withBody)('%s does what its example asks for', async (_name, place) => {
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
  test.each(withQuery)(
    '%s refuses a query parameter that it does not know, or twice',
    async (_name, place) => {
      const path = pathOf(place, {});
      for (const query of [
        'no_such_parameter=1',
        'limit=1&limit=1&from=1&from=1&external_user=a&external_user=a',
      ]) {
        const { status } = await send(stack, { method: place.method, path: `${path}?${query}` });
        expect(status).toBe(400);
      }
    },
  );
});

describe('the reference page', () => {
  const page = async () => {
    const answer = await fetch(`${stack.issuerUrl}/docs`);
    return { answer, text: await answer.text() };
  };

  test('needs no script and no other resource, and its policy allows none', async () => {
    const { answer, text } = await page();
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/html; charset=UTF-8']);
    const style = /<style>([\s\S]*?)<\/style>/.exec(text)?.[1] ?? '';
    const hash = createHash('sha256').update(style).digest('base64');
    const policy = answer.headers.get('content-security-policy');
    expect(policy).toContain("default-src 'none'; style-src 'sha256-");
    expect(policy).toContain(hash);
    expect(text).not.toMatch(/<script|\son\w+=|\sstyle=|\ssrc=|@import|url\(/i);
    const targets = Array.from(text.matchAll(/\shref="([^"]*)"/g), ([, target]) => target);
    expect(targets.filter((target) => !target?.startsWith('#'))).toEqual(['openapi.json']);
    for (const target of targets.filter((each) => each?.startsWith('#'))) {
      expect(text).toContain(`id="${target?.slice(1)}"`);
    }
  });

  test.each(named)('has %s, with its path, every field and every code', async (name, place) => {
    const { text } = await page();
    const [section = ''] = new RegExp(`<section id="${name}">[\\s\\S]*?</section>`).exec(text) ?? [];
    expect(section).toContain(`<code>${place.path}</code>`);
    for (const field of fieldsOf(place.operation))
      expect(section).toContain(`>${field.name.split('.').at(-1)}<`);
    for (const status of Object.keys(place.operation.responses)) expect(section).toContain(`>${status}<`);
  });

  test.skipIf(spawnSync('curl', ['--version']).status !== 0)(
    'has curl commands that work as they stand',
    async () => {
      const { text } = await page();
      const commands = Array.from(text.matchAll(/<pre><code>(curl[\s\S]*?)<\/code>/g), ([, each]) =>
        plain(each ?? ''),
      );
      expect(commands).toHaveLength(operations.length);
      // An account of its own, because an account has one budget for each scope and window.
      const { id } = await addAccount(stack);
      const apiKey = await addApiKey(stack, id, { scopes: ['admin', 'operator'] });
      for (const command of commands) {
        const env = {
          PATH: process.env.PATH,
          PRESIGN_API_KEY: apiKey,
          ID: randomUUID(),
          DELIVERY_ID: randomUUID(),
        };
        const status = await run(`${command} -sS -o /dev/null -w '%{http_code}'`, env);
        expect(status, command).toMatch(/\$(?:\w+_)?ID\b/.test(command) ? /^(404|2..)$/ : /^2..$/);
      }
    },
  );
});

/** HTML's escapes undone. */
const plain = (text: string) =>
  text
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&');

/** The output of a shell command. The issuer, which is in this process, goes on meanwhile. */
async function run(command: string, env: NodeJS.ProcessEnv): Promise<string> {
  const { stdout } = await promisify(execFile)('sh', ['-c', command], { env });
  return stdout;
}

import { randomUUID } from 'node:crypto';
import type { ApiKeyAnswer, NewApiKeyAnswer } from '@presign/schema';
import { apiKeys, audit } from '@presign/schema/tables';
import { desc, eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { answerChat, startUpstream, type Upstream } from '../harness/upstream.ts';
import { addAccount, addApiKey } from './accounts.ts';
import { issue, least, refused, type Sent, send } from './ask.ts';
import { EAGER } from './own-issuer.ts';
import { createVirtualKey } from './virtual-keys.ts';
import { addEndpoint, arrived, type Endpoint, sendTest } from './webhook-receiver.ts';

let upstream: Upstream;
let stack: Stack;
const endpoints: Endpoint[] = [];
beforeAll(async () => {
  upstream = await startUpstream(answerChat);
  stack = await startStack({ gateways: 2, providers: { openai: { base_url: upstream.url } }, issuer: EAGER });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
  for (const each of endpoints) await each.upstream.close();
});

const patch = (path: string, body: object, headers = {}, apiKey = stack.apiKey): Promise<Sent> =>
  send(stack, { method: 'PATCH', path, body, headers, apiKey });
const bodyOf = <T = Record<string, unknown>>(sent: Sent, status = 200): T => {
  expect(sent.status, sent.text).toBe(status);
  return JSON.parse(sent.text) as T;
};
const read = async (path: string) => {
  const sent = await send(stack, { method: 'GET', path });
  return { etag: sent.headers.get('etag'), body: bodyOf(sent) };
};
const makeKey = async (fields: object = {}) =>
  bodyOf<NewApiKeyAnswer>(
    await send(stack, {
      path: '/v1/api-keys',
      body: { name: 'old', scopes: ['presign', 'read'], ...fields },
    }),
    201,
  );
const makeEndpoint = async (events?: readonly string[]) => {
  const made = await addEndpoint(stack, events ? { events } : {});
  endpoints.push(made);
  return made;
};
const seconds = (ahead: number) => Math.floor(Date.now() / 1000) + ahead;

/** Everything with a PATCH apart from grants: its path, a change, and a field of the answer. */
const CHANGES: Readonly<Record<string, () => Promise<{ path: string; body: object; other: object }>>> = {
  'an API key': async () => ({
    path: `/v1/api-keys/${(await makeKey()).id}`,
    body: { name: 'new' },
    other: { name: 'newer' },
  }),
  'a virtual key': async () => ({
    path: `/v1/virtual-keys/${(await createVirtualKey(stack, { budget: { max_uses: 5 } })).id}`,
    body: { name: 'new', budget: { max_uses: 7 } },
    other: { budget: { max_uses: 8 } },
  }),
  'an endpoint': async () => ({
    path: `/v1/webhooks/${(await makeEndpoint()).id}`,
    body: { description: 'new', events: ['grant.revoked'] },
    other: { events: ['grant.expired'] },
  }),
  'a session': async () => ({
    path: `/v1/sessions/${(await issue(stack, {})).session_id}`,
    body: { name: 'new', metadata: { plan: 'a' } },
    other: { metadata: { plan: 'b' } },
  }),
};

describe.each(Object.entries(CHANGES))('%s', (_name, make) => {
  test('is changed once for each revision, with ETag and If-Match', async () => {
    const { path, body, other } = await make();
    expect((await read(path)).etag).toBe('"1"');
    const first = await patch(path, body, { 'if-match': '"1"' });
    expect(bodyOf(first)).toMatchObject({ revision: 2 });
    expect(first.headers.get('etag')).toBe('"2"');
    refused(await patch(path, other, { 'if-match': '"1"' }), 'revision_mismatch', 'If-Match');
    const after = await read(path);
    expect(after).toMatchObject({ etag: '"2"', body: { revision: 2 } });
    expect(bodyOf(await patch(path, body))).toMatchObject({ revision: 2 });
    expect(bodyOf(await patch(path, other, { 'if-match': '"1", "2"' }))).toMatchObject({ revision: 3 });
    expect(bodyOf(await patch(path, body, { 'if-match': '*' }))).toMatchObject({ revision: 4 });
  });

  test('writes an audit entry for each change, and a refused change changes nothing', async () => {
    const { path, body, other } = await make();
    const id = path.split('/').at(-1) ?? '';
    bodyOf(await patch(path, body));
    refused(await patch(path, other, { 'if-match': '"1"' }), 'revision_mismatch', 'If-Match');
    const rows = await stack.db
      .select()
      .from(audit)
      .where(eq(audit.targetId, id))
      .orderBy(desc(audit.at))
      .limit(1);
    expect(rows).toMatchObject([
      { action: expect.stringMatching(/^(api_key|virtual_key|webhook|session)\.changed$/) },
    ]);
    expect(rows[0]?.before).not.toEqual(rows[0]?.after);
  });

  test('refuses one of two parallel changes for one revision', async () => {
    const { path, body, other } = await make();
    const both = await Promise.all([body, other].map((each) => patch(path, each, { 'if-match': '"1"' })));
    expect(both.map(({ status }) => status).sort()).toEqual([200, 412]);
    expect((await read(path)).body).toMatchObject({ revision: 2 });
  });

  test('refuses a change without a field, with an unknown field, or by another account', async () => {
    const { path, body } = await make();
    expect((await patch(path, {})).status).toBe(400);
    refused(await patch(path, { ...body, no_such_field: 1 }), 'invalid_request', 'no_such_field');
    const { id } = await addAccount(stack);
    const stranger = await addApiKey(stack, id, { scopes: ['admin'] });
    refused(await patch(path, body, {}, stranger), 'not_found');
    expect((await read(path)).etag).toBe('"1"');
  });
});

describe('an API key', () => {
  const asks = async (apiKey: string, method = 'POST') =>
    (
      await send(
        stack,
        method === 'POST' ? { body: least, apiKey } : { method, path: '/v1/sessions', apiKey },
      )
    ).status;

  test('that loses a scope or gets a policy is judged by the change from its next request on', async () => {
    const { id, key } = await makeKey();
    expect([await asks(key), await asks(key, 'GET')]).toEqual([200, 200]);
    const policy = { required: ['max_uses'] };
    bodyOf(await patch(`/v1/api-keys/${id}`, { scopes: ['presign'], policy }));
    expect([await asks(key), await asks(key, 'GET')]).toEqual([403, 403]);
    expect((await send(stack, { body: { ...least, max_uses: 1 }, apiKey: key })).status).toBe(200);
    bodyOf(await patch(`/v1/api-keys/${id}`, { policy: null }));
    expect(await asks(key)).toBe(200);
  });

  test('cannot get a scope that the changing key lacks', async () => {
    const { id } = await makeKey({ scopes: ['read'] });
    for (const scope of ['presign', 'admin', 'operator'])
      refused(await patch(`/v1/api-keys/${id}`, { scopes: ['read', scope] }), 'invalid_request', 'scopes[1]');
  });

  test('expires at its changed expiry, and cannot be revived', async () => {
    const { id, key } = await makeKey();
    refused(await patch(`/v1/api-keys/${id}`, { expires_at: seconds(-1) }), 'invalid_request', 'expires_at');
    expect(bodyOf(await patch(`/v1/api-keys/${id}`, { expires_at: seconds(600) }))).toMatchObject({
      expires_at: expect.any(Number),
    });
    expect(await asks(key)).toBe(200);
    expect(bodyOf(await patch(`/v1/api-keys/${id}`, { expires_at: null }))).toMatchObject({
      expires_at: null,
    });
    await stack.db
      .update(apiKeys)
      .set({ expiresAt: new Date(Date.now() - 1_000) })
      .where(eq(apiKeys.id, id));
    refused(await patch(`/v1/api-keys/${id}`, { expires_at: null }), 'api_key_ended');
    const revoked = await makeKey();
    await send(stack, { method: 'DELETE', path: `/v1/api-keys/${revoked.id}` });
    refused(await patch(`/v1/api-keys/${revoked.id}`, { name: 'again' }), 'api_key_ended');
  });

  test('with the scope admin accepts no policy, and the last admin key keeps its scope', async () => {
    const account = await addAccount(stack);
    const admin = await addApiKey(stack, account.id, { scopes: ['admin', 'read'] });
    const { id } =
      (await keysOf(admin)).find(({ scopes }) => scopes.includes('admin')) ?? expect.fail('no key');
    const change = (body: object) => patch(`/v1/api-keys/${id}`, body, {}, admin);
    refused(await change({ policy: { required: ['max_uses'] } }), 'invalid_request', 'policy');
    refused(await change({ scopes: ['read'] }), 'last_admin_key');
    await addApiKey(stack, account.id, { scopes: ['admin'] });
    expect(bodyOf(await change({ scopes: ['read'] }))).toMatchObject({ scopes: ['read'] });
    refused(await change({ name: 'mine' }), 'forbidden');
  });

  test('with the scope operator can be changed only by an operator', async () => {
    const { id } = await makeKey({ scopes: ['operator'] });
    const admin = await makeKey({ scopes: ['admin'] });
    refused(await patch(`/v1/api-keys/${id}`, { name: 'mine' }, {}, admin.key), 'forbidden');
    bodyOf(await patch(`/v1/api-keys/${id}`, { name: 'ours' }));
  });

  const keysOf = async (apiKey: string) => {
    const sent = await send(stack, { method: 'GET', path: '/v1/api-keys', apiKey });
    return bodyOf<{ data: ApiKeyAnswer[] }>(sent).data;
  };
});

describe('a virtual key', () => {
  const call = async (url: string, gateway = 0): Promise<string> => {
    const at = url.replace(stack.gatewayUrls[0] ?? '', stack.gatewayUrls[gateway] ?? '');
    const answer = await fetch(at, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'gpt-4o-mini',
        max_tokens: 100,
        messages: [{ role: 'user', content: 'a' }],
      }),
    });
    return ((await answer.json()) as { error?: { code: string } }).error?.code ?? 'ok';
  };
  const urlOf = async (id: string) =>
    (await issue(stack, { client_api_key: undefined, virtual_key: id })).url;

  test('with a spent budget that is raised serves its URLs on every gateway from the next call on, and stops them when the budget is lowered', async () => {
    const { id } = await createVirtualKey(stack, { budget: { max_uses: 1 } });
    const url = await urlOf(id);
    expect([await call(url), await call(url, 1)]).toEqual(['ok', 'uses_exhausted']);
    const raised = bodyOf(await patch(`/v1/virtual-keys/${id}`, { budget: { max_uses: 3 } }));
    expect(raised).toMatchObject({ budget: { max_uses: 3, cost_limit: null, live: { used: 1 } } });
    expect([await call(url), await call(url, 1), await call(url)]).toEqual(['ok', 'ok', 'uses_exhausted']);
    const none = bodyOf(await patch(`/v1/virtual-keys/${id}`, { budget: { max_uses: 0 } }));
    expect(none).toMatchObject({ budget: { max_uses: 0 } });
    expect([await call(url), await call(url, 1)]).toEqual(['uses_exhausted', 'uses_exhausted']);
    bodyOf(await patch(`/v1/virtual-keys/${id}`, { budget: { max_uses: -1, cost_limit: 0 } }));
    // Each gateway remembers the URL from before its first cost limit, and reads it again.
    expect(['cost_limit_reached', 'limits_unavailable']).toContain(await call(url));
    expect(await call(url)).toBe('cost_limit_reached');
  });

  test('uses its new config for URLs that are issued afterwards', async () => {
    const { id } = await createVirtualKey(stack, { config: { max_tokens: 5 } });
    const [before] = [await urlOf(id)];
    bodyOf(await patch(`/v1/virtual-keys/${id}`, { config: { max_tokens: 7 } }));
    const after = await urlOf(id);
    for (const [url, most] of [
      [before, 5],
      [after, 7],
    ] as const) {
      expect(await call(url)).toBe('ok');
      expect(JSON.parse(String(upstream.seen.at(-1)?.body))).toMatchObject({ max_completion_tokens: most });
    }
  });

  test('without limits can get them later, including the past use of its URLs, and lose them', async () => {
    const { id } = await createVirtualKey(stack);
    const path = `/v1/virtual-keys/${id}`;
    const url = await urlOf(id);
    expect([await call(url), await call(url, 1)]).toEqual(['ok', 'ok']);
    const limited = bodyOf(await patch(path, { budget: { max_uses: 3 } }));
    expect(limited).toMatchObject({ revision: 2, budget: { max_uses: 3, live: { used: 2 } } });
    const later = await urlOf(id);
    expect([await call(later, 1), await call(url), await call(later)]).toEqual([
      'ok',
      'uses_exhausted',
      'uses_exhausted',
    ]);
    const free = bodyOf(await patch(path, { budget: null }));
    expect(free).toMatchObject({ revision: 3, budget: { cost_limit: null, live: { used: 3 } } });
    expect([await call(url), await call(later, 1)]).toEqual(['ok', 'ok']);
    bodyOf(await patch(path, { budget: { max_uses: 9, cost_limit: 0 } }));
    // Each gateway remembers the URL from before its first cost limit, and reads it again.
    expect(['cost_limit_reached', 'limits_unavailable']).toContain(await call(url));
    expect(await call(url)).toBe('cost_limit_reached');
    const both = bodyOf(await patch(path, { budget: null }));
    expect(both).toMatchObject({ revision: 5, budget: { cost_limit: null, live: { used: 5, held: 0 } } });
    // Taken away twice is taken away.
    expect(bodyOf(await patch(path, { budget: null }))).toMatchObject({ revision: 5 });
    expect(await call(url, 1)).toBe('ok');
  });

  test('that was deleted cannot be changed', async () => {
    const { id } = await createVirtualKey(stack);
    await send(stack, { method: 'DELETE', path: `/v1/virtual-keys/${id}` });
    refused(await patch(`/v1/virtual-keys/${id}`, { name: 'again' }), 'virtual_key_revoked');
    refused(await patch(`/v1/virtual-keys/vk_${randomUUID()}`, { name: 'a' }), 'not_found');
  });
});

describe('an endpoint', () => {
  test('with a new URL gets its events there, signed with the same secret', async () => {
    const [old, next] = [
      await makeEndpoint(['grant.revoked']),
      await startUpstream((_s, r) => void r.writeHead(204).end()),
    ];
    const url = `${next.url}/hook`;
    expect(bodyOf(await patch(`/v1/webhooks/${old.id}`, { url }))).toMatchObject({
      url,
      events: ['grant.revoked'],
    });
    await sendTest(stack, old);
    await arrived({ ...old, upstream: next }, 1);
    expect(old.upstream.seen).toEqual([]);
    await next.close();
  });

  test('refuses a new URL that could not be registered', async () => {
    const { id } = await makeEndpoint();
    refused(await patch(`/v1/webhooks/${id}`, { url: 'ftp://example.com' }), 'invalid_request', 'url');
    refused(await patch(`/v1/webhooks/${id}`, { events: ['x'] }), 'invalid_request', 'events[0]');
  });
});

test('the name of a session is in the list, and its metadata is on the session', async () => {
  const user = `user-${randomUUID()}`;
  const { session_id: id } = await issue(stack, { external_user: user });
  bodyOf(await patch(`/v1/sessions/${id}`, { name: 'chat', metadata: { n: 1 } }));
  const list = await read(`/v1/sessions?external_user=${user}`);
  expect(list.body).toMatchObject({ data: [{ id, name: 'chat', revision: 2 }] });
  expect((await read(`/v1/sessions/${id}`)).body).toMatchObject({ name: 'chat', metadata: { n: 1 } });
  await send(stack, { method: 'DELETE', path: `/v1/sessions/${id}` });
  expect(bodyOf(await patch(`/v1/sessions/${id}`, { name: null }))).toMatchObject({
    name: null,
    status: 'ended',
  });
});

import { randomBytes, randomUUID } from 'node:crypto';
import { hashApiKey } from '@presign/crypto';
import { apiKeys } from '@presign/schema/tables';
import { eq } from 'drizzle-orm';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { type Answer, startUpstream, type Upstream } from '../harness/upstream.ts';
import { addVirtualKey, ownAccount } from '../issuer/accounts.ts';
import { claimsOf } from '../issuer/ask.ts';

type Line = Readonly<Record<string, unknown>>;

let upstream: Upstream;
let stack: Stack;
let keyId: string;
let account: string;
let answer: Answer;

const USAGE = { prompt_tokens: 100, completion_tokens: 50, total_tokens: 150 };
const OK: Answer = (_seen, response) => {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ choices: [{ index: 0, message: {}, finish_reason: 'stop' }], usage: USAGE }));
};

beforeAll(async () => {
  upstream = await startUpstream((...args) => answer(...args));
  const pricing = { m: { input: 1_000_000, output: 2_000_000 } };
  stack = await startStack({
    providers: {
      openai: { base_url: upstream.url, pricing },
      away: { extends: 'openai', base_url: `http://127.0.0.1:${await freePort()}` },
    },
  });
  const [row] = await stack.db
    .select()
    .from(apiKeys)
    .where(eq(apiKeys.hash, hashApiKey(stack.apiKey)));
  keyId = row?.id ?? '';
  account = await ownAccount(stack);
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

const path = '/v1/chat/completions';
const least = { provider: 'openai', path, client_api_key: 'sk-real' };
const issue = async (fields: object = {}) => (await stack.issue({ ...least, ...fields })).url;
const CALL = JSON.stringify({ model: 'm', max_tokens: 50, messages: [{ role: 'user', content: 'hi' }] });

type Sent = { readonly id: string; readonly status: number; readonly text: string };
async function send(url: string, method = 'POST', body: string | undefined = CALL): Promise<Sent> {
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const answered = await request(url, {
    method: method as 'POST',
    headers,
    body: method === 'POST' ? body : null,
  });
  const text = await answered.body.text();
  const id = answered.headers['x-presign-request-id'] ?? answered.headers['x-request-id'];
  return { id: String(id), status: answered.statusCode, text };
}

const lines = (): Line[] => stack.logs.map((line) => JSON.parse(line) as Line);
const callLines = () => lines().filter((line) => line['msg'] === 'call');
/** The one line of a call. It is written when the call is over, which may be after its answer. */
async function lineOf({ id }: Sent): Promise<Line> {
  const found = () => callLines().filter((line) => line['request_id'] === id);
  await eventually(async () => found().length > 0);
  expect(found()).toHaveLength(1);
  return found()[0] ?? {};
}
/** The line of the newest call of a kind, for answers that do not show their id. */
const newest = (kind: string) => callLines().findLast((line) => line['kind'] === kind);

const ofUrl = (url: string) => {
  const { jti, sub } = claimsOf(stack, url);
  return { grant: jti, session: sub };
};

test('the line of a call under a spend limit says who called what, how it ended, what it cost and how long it took', async () => {
  answer = OK;
  const virtual_key = await addVirtualKey(stack, account);
  const url = await issue({ cost_limit: 1_000_000, virtual_key, client_api_key: null });
  const sent = await send(url);
  expect(sent.status).toBe(200);
  const line = await lineOf(sent);
  expect(line).toMatchObject({
    ...{ level: 30, msg: 'call', kind: 'llm', account, api_key: keyId, ...ofUrl(url), virtual_key },
    ...{ provider: 'openai', model: 'm', method: 'POST', status: 200, ended: 'complete', uses: 1 },
    ...{ input_tokens: 100, output_tokens: 50, cost: 200 },
  });
  expect(line['hold']).toBeGreaterThanOrEqual(200);
  for (const name of ['first_byte_ms', 'own_ms', 'upstream_ms', 'ms'])
    expect(line[name], name).toSatisfy((ms: unknown) => typeof ms === 'number' && ms >= 0);
  expect(line['code']).toBeUndefined();
  // Own and upstream time are parts of the whole; each figure is rounded.
  expect(Number(line['own_ms']) + Number(line['upstream_ms'])).toBeLessThanOrEqual(Number(line['ms']) + 0.2);
});

describe('one line is logged for a call that', () => {
  const revoked = async () => {
    const url = await issue();
    await stack.issuer.ledger.drainAll();
    await fetch(`${stack.issuerUrl}/v1/grants/${ofUrl(url).grant}`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${stack.apiKey}` },
    });
    return url;
  };
  const spent = async () => {
    const url = await issue({ max_uses: 1 });
    await send(url);
    return url;
  };
  const quick = async () => {
    const url = await issue({ calls_per_minute: 1 });
    await send(url);
    return url;
  };
  test.each([
    ['is revoked', revoked, { status: 403, code: 'grant_revoked' }],
    ['has no uses left', spent, { status: 403, code: 'uses_exhausted', limit: 1, used: 1, limit_of: 'url' }],
    ['is too quick', quick, { status: 429, code: 'rate_limited', limit: 1 }],
    [
      'cannot be paid',
      () => issue({ cost_limit: 1 }),
      { status: 402, code: 'cost_limit_too_low', remaining: 1 },
    ],
    ['takes another path', async () => `${await issue()}/x`, { status: 403, code: 'path_not_allowed' }],
    ['takes another method', () => issue({ method: 'GET' }), { status: 403, code: 'method_not_allowed' }],
  ] as const)('%s', async (_why, urlOf, expected) => {
    answer = OK;
    const url = await urlOf();
    const sent = await send(url);
    const line = await lineOf(sent);
    expect(line).toMatchObject({ kind: 'llm', provider: 'openai', ...ofUrl(url), ...expected });
    expect(line['status']).toBe(sent.status);
    for (const name of ['uses', 'cost', 'upstream_ms', 'ended']) expect(line[name]).toBeUndefined();
  });

  test('has a cost without a bound: the line has the model', async () => {
    const body = JSON.stringify({ model: 'm', messages: [], not_known: 1 });
    const sent = await send(await issue({ cost_limit: 1_000_000 }), 'POST', body);
    expect(await lineOf(sent)).toMatchObject({ status: 422, code: 'cost_unbounded', model: 'm' });
  });

  test.each([
    ['m-2026', 'model=m-2026'],
    [`a text of the holder ${randomUUID()}`, 'model'],
    [`m-${randomUUID()}${randomUUID()}`, 'model'],
  ])(
    'has a model without a price: the line has the name only if it is short and plain (%j)',
    async (model, unbounded) => {
      const sent = await send(
        await issue({ cost_limit: 1_000_000 }),
        'POST',
        JSON.stringify({ model, messages: [] }),
      );
      const code = 'price_unknown';
      expect(await lineOf(sent)).toMatchObject({ status: 422, code, account, api_key: keyId, unbounded });
      if (unbounded === 'model') expect(stack.logs.join('')).not.toContain(model);
    },
  );

  test('has expired: the line has its grant, and its account if a call has passed before', async () => {
    answer = OK;
    // On a busy machine a URL may expire before its first call.
    const url = await eventually(async () => {
      const fresh = await issue({ expires_in: 1 });
      return (await send(fresh)).status === 200 && fresh;
    });
    const sent = await eventually(async () => {
      const again = await send(url);
      return again.status === 401 && again;
    });
    expect(await lineOf(sent)).toMatchObject({
      code: 'token_expired',
      ...ofUrl(url),
      account,
      api_key: keyId,
    });
  });

  test.each([
    ['fails', 500, { status: 500, code: 'provider_error', ended: 'complete' }],
    ['is refused', 429, { status: 429, code: 'provider_error', uses: 0 }],
  ] as const)('the provider %s', async (_how, status, expected) => {
    answer = (_seen, response) => void response.writeHead(status).end('{}');
    expect(await lineOf(await send(await issue()))).toMatchObject({ level: 30, ...expected });
  });

  test('the provider breaks off, or never gets', async () => {
    answer = (_seen, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '99' });
      response.write('{', () => response.destroy());
    };
    const url = await issue();
    await send(url).catch(() => {});
    const line = await eventually(async () => callLines().find((each) => each['grant'] === ofUrl(url).grant));
    expect(line).toMatchObject({ status: 200, code: 'answer_broken', ended: 'broken', error: 'failure' });
    const away = await send(await issue({ provider: 'away' }));
    expect(await lineOf(away)).toMatchObject({
      ...{
        level: 40,
        status: 502,
        code: 'upstream_unreachable',
        ended: 'unsent',
        error: 'ECONNREFUSED',
        uses: 0,
      },
    });
  });

  test('requests the status of a URL, a bundle document, or a bundle tool', async () => {
    answer = (_seen, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result: {} }));
    };
    const url = await issue();
    expect((await send(url.slice(0, -path.length), 'GET')).status).toBe(200);
    const own = { account, api_key: keyId };
    expect(newest('describe')).toMatchObject({
      ...own,
      ...ofUrl(url),
      provider: 'openai',
      method: 'GET',
      status: 200,
    });
    expect((await send(`${url.slice(0, -path.length)}x`, 'GET')).status).toBe(401);
    expect(newest('describe')).toMatchObject({ status: 401, code: 'token_invalid', reason: 'malformed' });

    const servers = [{ name: 's', url: `${upstream.url}/mcp`, transport: 'http' }];
    const bundle = await stack.issueMcp({ servers, max_uses: 1, cost_limit: 5_000 });
    const ofBundle = { ...own, session: bundle.session_id };
    expect((await send(bundle.bundle_url, 'GET')).status).toBe(200);
    expect(newest('bundle')).toMatchObject({ ...ofBundle, status: 200 });
    expect((await send(`${bundle.bundle_url}?format=none`, 'GET')).status).toBe(400);
    expect(newest('bundle')).toMatchObject({ ...ofBundle, status: 400, code: 'invalid_request' });
    expect((await send(bundle.bundle_url, 'POST')).status).toBe(403);
    expect(newest('bundle')).toMatchObject({ status: 403, code: 'method_not_allowed' });

    const tool = bundle.servers['s']?.url ?? '';
    const call = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}';
    const mcp = { ...ofBundle, kind: 'mcp', provider: 'mcp', server: 's', messages: 1 };
    expect(await lineOf(await send(tool, 'POST', call))).toMatchObject({
      ...mcp,
      status: 200,
      uses: 1,
      cost: 1_000,
    });
    expect(await lineOf(await send(tool, 'POST', call))).toMatchObject({
      ...mcp,
      status: 200,
      code: 'uses_exhausted',
    });
    expect(await lineOf(await send(tool.replace('mcp&token=', 'mcq&token='), 'POST', call))).toMatchObject({
      ...{ kind: 'mcp', code: 'token_invalid', reason: 'other_server', session: bundle.session_id },
    });
    expect(await lineOf(await send(tool, 'POST', '{'))).toMatchObject({
      kind: 'mcp',
      status: 400,
      code: 'invalid_json',
    });
  });
});

test('a gateway whose clock is 90 s slow logs that the token of each refused call was issued in the future', async () => {
  const slow = await stack.addGateway({ now: () => Date.now() - 90_000 });
  const url = await issue();
  const sent = await send(url.replace(stack.gatewayUrls[0] ?? '', slow));
  expect(sent.status).toBe(401);
  expect(await lineOf(sent)).toMatchObject({
    ...{ kind: 'llm', status: 401, code: 'token_invalid', reason: 'issued_in_the_future', ...ofUrl(url) },
  });
});

test('garbage requests cannot fill the disk with logs, and unlogged requests are counted', async () => {
  const mark = `mark${randomBytes(12).toString('hex')}`;
  const url = await issue({ max_uses: 1 });
  answer = OK;
  await send(url);
  const origin = stack.gatewayUrls[0] ?? '';
  const garbage = [
    ...[`/llm/t/${mark}/v1/x?key=${mark}`, `/llm/t/v4.public.${mark}/v1/x`, `/${mark}`, `/llm/t/${mark}`],
    ...[`/mcp/mcp?url=${mark}&token=${mark}`, `/mcp/bundle/${mark}`],
  ];
  const before = stack.logs.length;
  // All at once: a slow machine could log them one by one.
  const sent = await Promise.all(
    Array.from({ length: 30 }, () => garbage.map((target) => send(origin + target))).flat(),
  );
  expect(sent).toHaveLength(180);
  const since = () => stack.logs.slice(before).map((line) => JSON.parse(line) as Line);
  const logged = () => since().filter((line) => line['msg'] === 'call' && line['grant'] === undefined);
  const leftOut = () =>
    since().filter((line) => line['left_out'] !== undefined && line['grant'] === undefined);
  await eventually(async () => {
    const left = leftOut().reduce((sum, line) => sum + Number(line['left_out']), 0);
    return logged().length + left === 180;
  });
  expect(leftOut().length).toBeGreaterThan(0);
  // A flood of one URL leaves the refusals of another one in the log.
  await Promise.all(Array.from({ length: 60 }, () => send(url)));
  const other = await send(await issue({ cost_limit: 1 }));
  expect(await lineOf(other)).toMatchObject({ code: 'cost_limit_too_low' });
  const { grant } = ofUrl(url);
  await eventually(async () =>
    since().some((line) => line['grant'] === grant && Number(line['left_out']) > 0),
  );
  for (const line of since()) expect(JSON.stringify(line).length).toBeLessThan(700);
  expect(stack.logs.join('')).not.toContain(mark);
});

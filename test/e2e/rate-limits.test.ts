import { connectRedis } from '@presign/limits';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { addApiKey, ownAccount } from '../issuer/accounts.ts';
import { least, send } from '../issuer/ask.ts';
import { startOwnIssuer } from '../issuer/own-issuer.ts';
import { ask, at, post, tally, toolCall, urlOf } from '../mcp/holder.ts';
import { type McpUpstream, startMcpUpstream } from '../mcp/upstream.ts';

let provider: Upstream;
let server: McpUpstream;
let stack: Stack;

beforeAll(async () => {
  provider = await startUpstream((_seen, response) => {
    const own = { 'content-type': 'application/json', ratelimit: '"theirs";r=1;t=1' };
    response.writeHead(200, own).end('{"choices":[],"usage":{}}');
  });
  server = await startMcpUpstream();
  stack = await startStack({ gateways: 2, providers: { openai: { base_url: provider.url } } });
});
afterAll(async () => {
  await stack.close();
  await Promise.all([provider.close(), server.close()]);
});

const forwarded = { provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk-real' };
const call = (url: string) => fetch(url, { method: 'POST', body: '{"model":"m","messages":[]}' });
const told = ({ headers }: Response) => [headers.get('ratelimit-policy'), headers.get('ratelimit')];

describe('a URL with calls_per_minute', () => {
  test('serves that many calls at once, over two gateways, and refuses more with 429', async () => {
    const { url } = await stack.issue({ ...forwarded, calls_per_minute: 5, max_uses: 100 });
    const [first = '', second = ''] = stack.gatewayUrls;
    const before = provider.seen.length;
    const urls = Array.from({ length: 40 }, (_, i) => (i % 2 ? url : url.replace(first, second)));
    const answers = await Promise.all(urls.map(call));
    const served = answers.filter(({ status }) => status === 200);
    expect(served).toHaveLength(5);
    expect(provider.seen.length - before).toBe(5);
    const [late] = answers.filter(({ status }) => status === 429);
    expect(await late?.json()).toMatchObject({
      error: { code: 'rate_limited', type: 'rate_limit_error', limit: 5 },
    });
    const wait = Number(late?.headers.get('retry-after'));
    expect(wait).toBeGreaterThan(0);
    expect(wait).toBeLessThanOrEqual(12);
    // All five may be called at once again in a minute.
    const [policy, left] = late ? told(late) : [];
    expect([policy, left?.replace(/t=(60|59|58)$/, 't=…')]).toEqual([
      '"presign";q=5;w=60',
      '"presign";r=0;t=…',
    ]);
    // The refused calls cost no use.
    expect(await (await fetch(url.slice(0, url.indexOf('/v1/')))).json()).toMatchObject({
      used: 5,
      calls_per_minute: 5,
    });
  });

  test('states in every answer how many calls are left, next to the headers of the provider', async () => {
    const { url } = await stack.issue({ ...forwarded, calls_per_minute: 60 });
    expect(told(await call(url))).toEqual(['"presign";q=60;w=60', '"theirs";r=1;t=1, "presign";r=59;t=1']);
    const exposed = (await call(url)).headers.get('access-control-expose-headers')?.split(', ');
    expect(exposed).toEqual(expect.arrayContaining(['ratelimit', 'ratelimit-policy']));
  });

  test("without it passes the provider's own header", async () => {
    const { url } = await stack.issue(forwarded);
    expect(told(await call(url))).toEqual([null, '"theirs";r=1;t=1']);
  });

  test('makes an official SDK wait, and then serves it', async () => {
    const { url } = await stack.issue({ ...forwarded, calls_per_minute: 120 });
    for (let i = 0; i < 120; i += 40) await Promise.all(Array.from({ length: 40 }, () => call(url)));
    const statuses: number[] = [];
    const openai = new OpenAI({
      baseURL: url.replace('/chat/completions', ''),
      apiKey: 'none',
      maxRetries: 3,
      fetch: async (...request) => {
        const answer = await fetch(...request);
        statuses.push(answer.status);
        return answer;
      },
    });
    // On a slow machine the first call comes after one that is regained.
    while (!statuses.includes(429)) await openai.chat.completions.create({ model: 'm', messages: [] });
    expect(statuses.slice(-2)).toEqual([429, 200]);
  });

  test('shows it in its session', async () => {
    const { session_id: id } = await stack.issue({ ...forwarded, calls_per_minute: 7 });
    const answer = await fetch(`${stack.issuerUrl}/v1/sessions/${id}`, {
      headers: { authorization: `Bearer ${stack.apiKey}` },
    });
    expect(await answer.json()).toMatchObject({ grants: [{ calls_per_minute: 7 }] });
  });
});

describe('a bundle with calls_per_minute', () => {
  test('shares it among its servers, counts each request of a batch, and passes free requests', async () => {
    const servers = ['a', 'b'].map((name) => ({ name, url: server.url, transport: 'http' }));
    const answer = await stack.issueMcp({ servers, calls_per_minute: 4 });
    const on = (name: string, gateway: number) =>
      at(stack, stack.gatewayUrls[gateway] ?? '', urlOf(answer, name));
    const before = server.ran.length;
    const heard = await Promise.all([
      post(on('a', 0), [toolCall('run', 1), toolCall('run', 2)]),
      ...[0, 1, 0, 1, 0].map((i) => post(on('b', i), toolCall('run', 3))),
    ]);
    expect(server.ran.length - before).toBe(4);
    const outcomes = tally(heard);
    expect(outcomes.ran).toBe(4);
    const late = heard.find(({ messages }) => messages[0]?.error);
    expect(late?.status).toBe(200);
    expect(late?.messages[0]?.error?.data).toMatchObject({ code: 'rate_limited', limit: 4 });
    expect(Number(late?.headers['retry-after'])).toBeGreaterThan(0);
    expect((await post(on('a', 1), ask('initialize'))).status).toBe(200);
  });
});

describe('calls_per_day', () => {
  test('permanently refuses a batch with more requests than a day allows, and counts nothing', async () => {
    const servers = [{ name: 'a', url: server.url, transport: 'http' }];
    const url = urlOf(await stack.issueMcp({ servers, calls_per_day: 2 }), 'a');
    const before = server.ran.length;
    const { messages, headers } = await post(
      url,
      [1, 2, 3].map((id) => toolCall('run', id)),
    );
    const message =
      'This batch has 3 calls, and calls_per_day of this URL is 2, so it never passes. Send at most 2 in a batch, and as many a day.';
    const data = { code: 'daily_rate_limited', limit: 2, needed: 3 };
    expect(messages).toMatchObject([1, 2, 3].map((id) => ({ id, error: { message, data } })));
    expect(headers['retry-after']).toBeUndefined();
    expect(server.ran.length).toBe(before);
    expect(
      tally([
        await post(
          url,
          [1, 2].map((id) => toolCall('run', id)),
        ),
      ]),
    ).toEqual({ ran: 2 });
  });

  test('serves a URL that many times over two gateways, and states both limits of the URL', async () => {
    const { url, claims } = await stack.issue({ ...forwarded, calls_per_day: 5, calls_per_minute: 60 });
    expect(claims.crt).toEqual(['calls_per_day']);
    const first = await call(url);
    expect(told(first)).toEqual([
      '"presign";q=60;w=60, "presign-day";q=5;w=86400',
      '"theirs";r=1;t=1, "presign";r=59;t=1, "presign-day";r=4;t=17280',
    ]);
    const [one = '', other = ''] = stack.gatewayUrls;
    const before = provider.seen.length;
    const urls = Array.from({ length: 30 }, (_, i) => (i % 2 ? url : url.replace(one, other)));
    const answers = await Promise.all(urls.map(call));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(4);
    expect(provider.seen.length - before).toBe(4);
    const late = answers.find(({ status }) => status === 429) ?? expect.fail('none was refused');
    expect(await late.json()).toMatchObject({
      error: { code: 'daily_rate_limited', type: 'rate_limit_error', limit: 5 },
    });
    expect(told(late)).toEqual([
      '"presign-day";q=5;w=86400',
      expect.stringMatching(/^"presign-day";r=0;t=86\d{3}$/),
    ]);
    const wait = Number(late.headers.get('retry-after'));
    expect(wait).toBeGreaterThan(17_000);
    expect(wait).toBeLessThanOrEqual(17_280);
  });

  test('of a bundle is shared by its servers, and all their tokens name it', async () => {
    const servers = ['a', 'b'].map((name) => ({ name, url: server.url, transport: 'http' }));
    const answer = await stack.issueMcp({ servers, calls_per_day: 3 });
    expect(answer.claims.crt).toEqual(['calls_per_day']);
    const on = (name: string, gateway: number) =>
      at(stack, stack.gatewayUrls[gateway] ?? '', urlOf(answer, name));
    const heard = await Promise.all(
      Array.from({ length: 8 }, (_, i) => post(on(i % 2 ? 'a' : 'b', i % 2), toolCall('run', 1))),
    );
    expect(tally(heard).ran).toBe(3);
    const late = heard.find(({ messages }) => messages[0]?.error);
    expect(late?.messages[0]?.error?.data).toMatchObject({ code: 'daily_rate_limited', limit: 3 });
  });
});

describe('an API key', () => {
  const withKey = async (requestsPerMinute: number, issuerUrl = stack.issuerUrl) => {
    const apiKey = await addApiKey(stack, await ownAccount(stack), { requestsPerMinute });
    return () => send({ ...stack, issuerUrl }, { apiKey, body: least });
  };

  test('may make its number of requests a minute over all issuers, and answers state the limit', async () => {
    const other = await startOwnIssuer(stack);
    const apiKey = await addApiKey(stack, await ownAccount(stack), { requestsPerMinute: 6 });
    const sent = await Promise.all(
      Array.from({ length: 30 }, (_, i) =>
        send(i % 2 ? stack : { ...stack, ...other, apiKey }, { apiKey, body: least }),
      ),
    );
    expect(sent.filter(({ status }) => status === 200)).toHaveLength(6);
    const late = sent.find(({ status }) => status === 429);
    if (!late) throw new Error('none was refused');
    expect(JSON.parse(late.text)).toMatchObject({ error: { code: 'rate_limited', limit: 6 } });
    expect(Number(late.headers.get('retry-after'))).toBeLessThanOrEqual(10);
    expect(late.headers.get('ratelimit')).toMatch(/^"presign";r=0;t=(60|5\d)$/);
    expect(late.headers.get('ratelimit-policy')).toBe('"presign";q=6;w=60');
    await other.close();
  });

  test('of another account, or another key, is not affected by it', async () => {
    const [one, another] = [await withKey(1), await withKey(1)];
    expect((await one()).status).toBe(200);
    expect((await one()).status).toBe(429);
    const free = await another();
    expect(free.status).toBe(200);
    expect(free.headers.get('ratelimit')).toBe('"presign";r=0;t=60');
  });

  test("without its own limit has the operator's default", async () => {
    const issuer = await startOwnIssuer(stack, { requestsPerMinute: 2 });
    const apiKey = await addApiKey(stack, await ownAccount(stack), {});
    const once = async () => (await send({ ...stack, ...issuer }, { apiKey, body: least })).status;
    expect([await once(), await once(), await once()]).toEqual([200, 200, 429]);
    await issuer.close();
  });

  test('keeps issuing while Redis is down, uncounted', async () => {
    const redis = connectRedis('redis://127.0.0.1:1', () => {});
    const issuer = await startOwnIssuer(stack, { redis });
    const once = await withKey(1, issuer.issuerUrl);
    for (const sent of [await once(), await once()]) {
      expect(sent.status).toBe(200);
      expect(sent.headers.get('ratelimit')).toBeNull();
    }
    await issuer.close();
    redis.disconnect();
  });
});

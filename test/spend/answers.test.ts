import { ledger } from '@presign/schema/ledger-tables';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { grantIdOf } from '../chaos/sample.ts';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { socketsRead } from '../harness/thorough.ts';
import { type Answer, startUpstream, type Upstream } from '../harness/upstream.ts';
import { post, statusOf } from './many-calls.ts';

const usage = { prompt_tokens: 20, completion_tokens: 30, total_tokens: 50 };
const COST = 21;
const WHOLE = JSON.stringify({ choices: [{ index: 0, message: {}, finish_reason: 'stop' }], usage });

const answering =
  (status: number, body: string, contentType = 'application/json'): Answer =>
  (_seen, response) =>
    void response.writeHead(status, { 'content-type': contentType }).end(body);

let answer: Answer;
let upstream: Upstream;
let stack: Stack;
beforeAll(async () => {
  upstream = await startUpstream((...all) => answer(...all));
  const pricing = { priced: { input: 150_000, output: 600_000 } };
  const entry = { base_url: upstream.url, pricing };
  // However busy this machine is: an answer waits for its settle, which its headers are about.
  const gateway = { settlingMs: 60_000 };
  stack = await startStack({ gateways: 1, providers: { openai: entry }, gateway });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

const issue = async (limits: object, path: string | string[] = '/v1/chat/completions') =>
  (await stack.issue({ provider: 'openai', path, client_api_key: 'sk', ...limits })).url;
const body = (more: object = {}) => ({
  model: 'priced',
  messages: [{ role: 'user', content: 'Hi' }],
  max_tokens: 100,
  ...more,
});
const own = (headers: Record<string, unknown>) =>
  Object.fromEntries(
    Object.entries(headers).filter(
      ([name]) => name.startsWith('x-presign-') && name !== 'x-presign-request-id',
    ),
  );
const rowsOf = (url: string, count: number) =>
  eventually(async () => {
    await stack.issuer.ledger.drainAll();
    const rows = await stack.db
      .select()
      .from(ledger)
      .where(eq(ledger.grantId, grantIdOf(url)));
    return rows.length >= count ? rows : undefined;
  });

describe('the headers of an answer', () => {
  test('state the cost, the money left and the uses left, and omit what is not limited', async () => {
    answer = answering(200, WHOLE);
    const both = await post(await issue({ cost_limit: 1_000, max_uses: 3 }), body());
    expect(own(both.headers)).toEqual({
      'x-presign-cost': String(COST),
      'x-presign-cost-remaining': String(1_000 - COST),
      'x-presign-uses-remaining': '2',
    });
    const uses = await post(await issue({ max_uses: 3 }), body());
    expect(own(uses.headers)).toEqual({ 'x-presign-uses-remaining': '2' });
    expect(own((await post(await issue({}), body())).headers)).toEqual({});
  });

  test('of a stream state the figures known before it begins', async () => {
    const stream = `data: ${JSON.stringify({ choices: [], usage })}\n\ndata: [DONE]\n\n`;
    answer = answering(200, stream, 'text/event-stream');
    const url = await issue({ cost_limit: 1_000, max_uses: 3 });
    expect(own((await post(url, body({ stream: true }))).headers)).toEqual({
      'x-presign-uses-remaining': '2',
    });
    expect(await statusOf(url)).toMatchObject({ used: 1, spent: COST });
  });

  test('begin a slow answer with whitespace, and the end waits for its charge', async () => {
    const url = await issue({ cost_limit: 1_000 });
    let work = () => {};
    let end = () => {};
    answer = (_seen, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).write('\n');
      work = () => void response.write(' \n');
      end = () => void response.end(WHOLE);
    };
    const response = await fetch(url, { method: 'POST', body: JSON.stringify(body()) });
    expect(own(Object.fromEntries(response.headers))).toEqual({});
    const reader = response.body?.getReader();
    const next = async () => Buffer.from((await reader?.read())?.value ?? []).toString();
    expect(await next()).toBe('\n');
    work();
    expect(await next()).toBe(' \n');
    end();
    let rest = '';
    for (let part = await next(); part !== ''; part = await next()) rest += part;
    expect(rest).toBe(WHOLE);
    expect((await statusOf(url)).spent).toBe(COST);
  });

  test('of an error state that it cost nothing, and of a refused call that its use is returned', async () => {
    const url = await issue({ cost_limit: 1_000, max_uses: 3 });
    answer = answering(400, '{"error":{"message":"no"}}');
    expect(own((await post(url, body())).headers)).toEqual({
      'x-presign-cost': '0',
      'x-presign-cost-remaining': '1000',
      'x-presign-uses-remaining': '2',
    });
    answer = answering(429, '{"error":{"message":"slow down"}}');
    expect(own((await post(url, body())).headers)).toMatchObject({
      'x-presign-cost': '0',
      'x-presign-uses-remaining': '2',
    });
    expect(await statusOf(url)).toMatchObject({ used: 1, spent: 0, held: 0 });
  });

  test('of an error from an intermediary state the hold, which is charged', async () => {
    answer = answering(502, '<h1>Bad Gateway</h1>', 'text/html');
    const url = await issue({ cost_limit: 1_000 });
    const cost = Number((await post(url, body())).headers['x-presign-cost']);
    expect(cost).toBeGreaterThan(60);
    expect(await statusOf(url)).toMatchObject({ used: 1, spent: cost, held: 0 });
  });

  test('state a lowered bound, which is the one that the provider got', async () => {
    answer = answering(200, WHOLE);
    const { headers } = await post(await issue({ cost_limit: 500 }), body({ max_tokens: 1_000_000 }));
    const bound = Number(headers['x-presign-max-tokens']);
    expect(bound).toBeGreaterThanOrEqual(256);
    expect(bound).toBeLessThan(500 / 0.6);
    const sent = JSON.parse(upstream.seen.at(-1)?.body.toString() ?? '') as Record<string, unknown>;
    expect([sent['max_completion_tokens'], sent['max_tokens']]).toEqual([bound, undefined]);
    const fits = await post(await issue({ cost_limit: 1_000_000 }), body());
    expect(fits.headers['x-presign-max-tokens']).toBeUndefined();
  });
});

describe('GET on a URL without a path', () => {
  test('returns limits, used, spent and held amounts during a call', async () => {
    let finish = () => {};
    const asked = new Promise<void>((resolve) => {
      answer = async (_seen, response) => {
        resolve();
        await new Promise<void>((go) => {
          finish = go;
        });
        response.writeHead(200, { 'content-type': 'application/json' }).end(WHOLE);
      };
    });
    const url = await issue({ cost_limit: 1_000, max_uses: 3 }, ['/v1/chat/completions', '/v1/embeddings']);
    const calling = post(url, body());
    await asked;
    const under = await statusOf(url);
    expect(under).toMatchObject({
      provider: 'openai',
      method: 'POST',
      paths: ['/v1/chat/completions', '/v1/embeddings'],
      max_uses: 3,
      used: 1,
      cost_limit: 1_000,
      spent: 0,
    });
    expect(under.held).toBeGreaterThan(COST);
    finish();
    await calling;
    expect(await statusOf(url)).toMatchObject({ used: 1, spent: COST, held: 0 });
  });

  test('is not cacheable, costs no use and writes nothing to the ledger', async () => {
    answer = answering(200, WHOLE);
    const url = await issue({ max_uses: 1 });
    const [base = ''] = url.split('/v1/');
    const told = await fetch(base);
    expect([told.status, told.headers.get('cache-control')]).toEqual([200, 'no-store']);
    for (let i = 0; i < 5; i++) await statusOf(url);
    expect((await post(url, body())).status).toBe(200);
    expect(await rowsOf(url, 1)).toHaveLength(1);
    expect(await statusOf(url)).toMatchObject({ max_uses: 1, used: 1, cost_limit: null });
  });
});

describe('without a cost limit', () => {
  test('metered usage is recorded with its cost, streamed or not', async () => {
    const url = await issue({});
    answer = answering(200, WHOLE);
    await post(url, body());
    answer = answering(
      200,
      `data: ${JSON.stringify({ choices: [], usage })}\n\ndata: [DONE]\n\n`,
      'text/event-stream',
    );
    await post(url, body({ stream: true }));
    for (const row of await rowsOf(url, 2))
      expect(row).toMatchObject({ costMicrousd: COST, inputTokens: 20, outputTokens: 30, model: 'priced' });
  });

  test.each<[string, object, Answer]>([
    ['of a model without a price', { model: 'unheard-of' }, answering(200, WHOLE)],
    ['of an answer that tells no usage', {}, answering(200, '{"choices":[]}')],
    ["of an intermediary's page", {}, answering(502, '<h1>', 'text/html')],
    [
      'of a broken answer',
      {},
      (_seen, response) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.write('{"choices"', () => void socketsRead().then(() => response.destroy()));
      },
    ],
  ])('the cost %s is unknown, not 0', async (_what, more, answers) => {
    answer = answers;
    const url = await issue({});
    await post(url, body(more));
    expect((await rowsOf(url, 1)).map((row) => row.costMicrousd)).toEqual([null]);
    expect(await statusOf(url)).toMatchObject({ used: 1, spent: 0 });
  });

  test('an error of the provider costs 0', async () => {
    answer = answering(500, '{"error":{"message":"oops"}}');
    const url = await issue({});
    await post(url, body());
    expect((await rowsOf(url, 1)).map((row) => row.costMicrousd)).toEqual([0]);
  });

  const send = async (text: string) => {
    await fetch(await issue({}), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: text,
    });
    return upstream.seen.at(-1)?.body.toString();
  };

  test.each([
    ['oddly spaced', '{ "model" :"priced",\n\t"messages": [ ],  "max_tokens": 1e2 }'],
    ['of unknown fields', '{"model":"priced","some_new_field":{"a":[1.0,2.50]}}'],
    ['with a stream whose usage is asked for', '{"stream":true, "stream_options":{"include_usage":true} }'],
    ['that is no JSON', 'not JSON'],
  ])('a body %s reaches the provider byte for byte', async (_what, text) => {
    answer = answering(200, WHOLE);
    expect(await send(text)).toBe(text);
  });

  test('a stream whose usage must be requested gets that field added, and nothing else', async () => {
    answer = answering(200, 'data: [DONE]\n\n', 'text/event-stream');
    const sent = await send('{"model":"priced", "stream":true, "n":1, "max_tokens":5}');
    expect(JSON.parse(sent ?? '')).toEqual({
      model: 'priced',
      stream: true,
      n: 1,
      max_tokens: 5,
      stream_options: { include_usage: true },
    });
  });
});

import type { ServerResponse } from 'node:http';
import { type BudgetAnswer, budgetAnswer } from '@presign/schema';
import { budgets } from '@presign/schema/tables';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { send } from '../issuer/ask.ts';
import { EAGER } from '../issuer/own-issuer.ts';
import { addEndpoint } from '../issuer/webhook-receiver.ts';

let provider: Upstream;
let stack: Stack;
/** How the provider answers. */
let answers: (response: ServerResponse) => void;
/** The tokens that `call` holds. */
let most: number;

const reports = (usage: object | undefined) => (response: ServerResponse) =>
  void response
    .writeHead(200, { 'content-type': 'application/json' })
    .end(JSON.stringify({ id: 'x', model: 'm', choices: [], usage }));
const used = (input: number, output: number) =>
  reports({ prompt_tokens: input, completion_tokens: output, total_tokens: input + output });

beforeAll(async () => {
  provider = await startUpstream((_seen, response) => answers(response));
  stack = await startStack({
    ...{ gateways: 2, providers: { openai: { base_url: provider.url } }, issuer: EAGER },
  });
});
beforeAll(async () => {
  await create('probe', { tokens: 1 });
  const url = await urlOf('probe');
  most = await eventually(async () => Number((await errorOf(await call(url))).needed) || undefined);
  expect(most).toBeGreaterThan(900);
});
beforeEach(() => {
  answers = used(100, 400);
});
afterAll(async () => {
  await stack.close();
  await provider.close();
});

async function ask(method: string, path: string, body?: object): Promise<BudgetAnswer> {
  const sent = await send(stack, { method, path: `/v1/budgets${path}`, ...(body && { body }) });
  expect(sent.status, sent.text).toBeLessThan(202);
  return budgetAnswer.parse(JSON.parse(sent.text));
}
const create = (user: string, limits: object) =>
  ask('POST', '', { scope: { external_user: user }, ...limits });
const urlOf = async (user: string, more: object = {}) =>
  (
    await stack.issue({
      ...{ provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk', external_user: user },
      ...more,
    })
  ).url;
const onSecond = (url: string) => url.replace(stack.gatewayUrls[0] ?? '', stack.gatewayUrls[1] ?? '');

/** A call that may use 900 tokens of output, and some of input. */
const call = (url: string, more: object = {}) =>
  fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      ...{ model: 'm', messages: [{ role: 'user', content: 'Hi' }], max_tokens: 900 },
      ...more,
    }),
  });
async function errorOf(answer: Response): Promise<Record<string, unknown>> {
  const { error = {} } = (await answer.json()) as { error?: Record<string, unknown> };
  return error;
}
const codeOf = async (answer: Promise<Response>) => (await errorOf(await answer)).code ?? 'ok';
const liveOf = async (id: string) => (await ask('GET', `/${id}`)).current?.live;

describe('a budget of tokens', () => {
  test('is never exceeded by simultaneous calls over two gateways, and the ledger equals the window', async () => {
    const limit = 20_000;
    const { id, tokens } = await create('crowd', { tokens: limit, window: 'day' });
    expect(tokens).toBe(limit);
    const urls = await Promise.all(Array.from({ length: 5 }, () => urlOf('crowd')));
    const before = provider.seen.length;
    const caller = async (_: unknown, i: number) => {
      const url = urls[i % 5] ?? '';
      for (let n = 0; n < 12; n++) {
        const code = await codeOf(call(i % 2 ? url : onSecond(url)));
        expect(code).toMatch(/^(ok|token_limit_reached|token_limit_too_low|tokens_held|limits_unavailable)$/);
        const live = await liveOf(id);
        expect((live?.tokens ?? 0) + (live?.tokens_held ?? 0)).toBeLessThanOrEqual(limit);
      }
    };
    await Promise.all(Array.from({ length: 10 }, caller));
    // One after the other, nothing holds the rest, so calls pass until one does not fit.
    await eventually(async () => (await codeOf(call(urls[0] ?? ''))) === 'token_limit_too_low');
    const passed = provider.seen.length - before;
    await stack.issuer.ledger.drainAll();
    const { current } = await ask('GET', `/${id}`);
    expect(current).toMatchObject({
      settled: { used: passed, tokens: passed * 500 },
      live: { used: passed, tokens: passed * 500, tokens_held: 0 },
    });
    expect(passed * 500).toBeLessThanOrEqual(limit);
    expect(passed * 500 + most).toBeGreaterThan(limit);
  });

  test('that is hidden is named in no refusal, which says only that a budget refused', async () => {
    const { id } = await create('refused', { name: 'secret', tokens: most + 100, visible: false });
    const url = await urlOf('refused');
    const waiting: ServerResponse[] = [];
    answers = (response) => void waiting.push(response);
    const running = call(url);
    await eventually(async () => waiting.length === 1);
    expect(await liveOf(id)).toMatchObject({ tokens: 0, tokens_held: most });
    const held = await call(onSecond(url));
    expect(held.status).toBe(429);
    expect(held.headers.get('retry-after')).toMatch(/^[1-9]\d?$/);
    const fields = {
      ...{ message: expect.not.stringMatching(/secret|\d/), param: null, request_id: expect.any(String) },
      ...{ limit_of: 'budget', budget: id, needed: expect.any(Number) },
    };
    expect(await errorOf(held)).toEqual({ code: 'tokens_held', type: 'rate_limit_error', ...fields });
    for (const response of waiting) used(100, 400)(response);
    expect((await running).status).toBe(200);
    answers = used(100, 400);
    await eventually(async () => (await liveOf(id))?.tokens === 500);
    const tooLow = await call(url);
    expect(tooLow.status).toBe(402);
    expect(await errorOf(tooLow)).toEqual({
      code: 'token_limit_too_low',
      type: 'insufficient_quota',
      ...fields,
    });
    expect(await codeOf(call(url, { max_tokens: 400 }))).toBe('ok');
    await ask('PATCH', `/${id}`, { tokens: 1_000 });
    const spent = await call(onSecond(url));
    expect(spent.status).toBe(402);
    expect(await errorOf(spent)).toEqual({
      code: 'token_limit_reached',
      type: 'insufficient_quota',
      ...fields,
    });
  });

  test('counts the full hold of a call if the provider reports no usage, and nothing if it refused', async () => {
    const { id } = await create('silent', { tokens: 5_000 });
    const url = await urlOf('silent');
    answers = (response) => void response.writeHead(429).end('{"error": {"message": "slow down"}}');
    expect((await call(url)).status).toBe(429);
    await eventually(async () => (await liveOf(id))?.tokens_held === 0);
    expect((await liveOf(id))?.tokens).toBe(0);
    answers = reports(undefined);
    expect((await call(url)).status).toBe(200);
    await eventually(async () => (await liveOf(id))?.tokens_held === 0);
    expect((await liveOf(id))?.tokens).toBe(most);
  });

  test('refuses a call without a bound, and a URL on which no call has one', async () => {
    await create('unbounded', { tokens: 50_000 });
    const url = await urlOf('unbounded');
    const answer = await call(url, { surprise: 1 });
    expect(answer.status).toBe(422);
    expect(await errorOf(answer)).toMatchObject({ code: 'tokens_unbounded', param: 'surprise' });
    const refused = await stack.presign({
      ...{ provider: 'openai', path: '/v1/unknown', client_api_key: 'sk', external_user: 'unbounded' },
    });
    expect(refused.status).toBe(400);
    expect(await errorOf(refused)).toMatchObject({ code: 'invalid_request', param: 'path' });
  });

  test('that is set later includes what its window has used, and judges the next call on every gateway', async () => {
    const { id, tokens } = await create('later', { max_uses: 99 });
    expect(tokens).toBeNull();
    const url = await urlOf('later');
    for (const each of [url, onSecond(url)]) expect(await codeOf(call(each))).toBe('ok');
    await eventually(async () => (await liveOf(id))?.tokens === 1_000);
    expect(await ask('PATCH', `/${id}`, { tokens: 1_000 })).toMatchObject({ max_uses: 99, tokens: 1_000 });
    // A gateway may have planned its first call without the limit. That call does not pass either.
    for (const each of [url, onSecond(url)])
      await eventually(async () => {
        const code = await codeOf(call(each));
        expect(code).not.toBe('ok');
        return code === 'token_limit_reached';
      });
    await ask('PATCH', `/${id}`, { tokens: null });
    for (const each of [url, onSecond(url)]) expect(await codeOf(call(each))).toBe('ok');
  });

  test('from a template applies to each value, until the budget of one value is changed', async () => {
    const template = await ask('POST', '', { scope: { metadata: { team: '*' } }, tokens: most + 300 });
    const ofTeam = (team: string) => urlOf(`member-${team}`, { metadata: { team } });
    const [red, blue] = [await ofTeam('red'), await ofTeam('blue')];
    expect([await codeOf(call(red)), await codeOf(call(red))]).toEqual(['ok', 'token_limit_too_low']);
    expect(await codeOf(call(blue))).toBe('ok');
    const sent = await send(stack, { method: 'GET', path: `/v1/budgets?template=${template.id}` });
    const { data } = JSON.parse(sent.text) as { data: BudgetAnswer[] };
    expect(data.map(({ tokens }) => tokens)).toEqual([most + 300, most + 300]);
    const ofRed = data.find(({ scope }) => scope.metadata?.team === 'red');
    await ask('PATCH', `/${ofRed?.id}`, { tokens: 9_000 });
    expect([await codeOf(call(red)), await codeOf(call(blue))]).toEqual(['ok', 'token_limit_too_low']);
    expect(await ask('GET', `/${template.id}`)).toMatchObject({ tokens: most + 300, current: null });
  });

  test('announces its thresholds and its exhaustion', async () => {
    const endpoint = await addEndpoint(stack, { events: ['budget.threshold', 'budget.exhausted'] });
    const { id } = await create('announced', { tokens: 500 + most, thresholds: [60] });
    const limit = 500 + most;
    const url = await urlOf('announced');
    expect(await codeOf(call(url))).toBe('ok');
    // The second call is charged all that it held, which is the rest.
    answers = reports(undefined);
    expect(await codeOf(call(url))).toBe('ok');
    const announced = () =>
      endpoint.events().flatMap((event) => {
        const isOurs = event.type.startsWith('budget.') && 'budget' in event.data && event.data.budget === id;
        return isOurs ? [{ type: event.type, data: event.data }] : [];
      });
    await eventually(async () => new Set(announced().map(({ type }) => type)).size === 2);
    const window = {
      ...{ budget: id, limit: 'tokens', tokens: limit, max_uses: null, cost_limit: null },
      settled: { used: 2, spent: 0, tokens: limit },
    };
    expect(announced()).toContainEqual({
      ...{ type: 'budget.threshold', data: expect.objectContaining({ limit: 'tokens', percent: 60 }) },
    });
    expect(announced()).toContainEqual({ type: 'budget.exhausted', data: expect.objectContaining(window) });
    await endpoint.upstream.close();
    const [row] = await stack.db.select().from(budgets).where(eq(budgets.sharedId, id));
    expect(row).toMatchObject({ usedTokens: limit, announcedTokensPercent: 100 });
  });

  test.each([
    [{ tokens: -1 }, 'tokens'],
    [{ tokens: 1.5 }, 'tokens'],
    [{ tokens: 2 ** 53 }, 'tokens'],
    [{}, null],
  ])('is not created with %j', async (limits, param) => {
    const sent = await send(stack, { path: '/v1/budgets', body: { scope: { account: true }, ...limits } });
    expect(sent.status).toBe(400);
    expect(JSON.parse(sent.text)).toMatchObject({ error: { code: 'invalid_request', param } });
  });
});

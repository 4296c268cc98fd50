import { type BudgetAnswer, budgetAnswer } from '@presign/schema';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { send } from '../issuer/ask.ts';
import { PRICE } from './recorded.ts';

let upstream: Upstream;
let stack: Stack;

beforeAll(async () => {
  upstream = await startUpstream((_seen, response) => {
    const usage = { prompt_tokens: 5, completion_tokens: 20, total_tokens: 25 };
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ choices: [], usage }));
  });
  const providers = { openai: { base_url: upstream.url, pricing: { m: PRICE } } };
  stack = await startStack({ gateways: 2, providers, gateway: { settlingMs: 60_000 } });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

const budget = async (method: string, path: string, body?: object): Promise<BudgetAnswer> => {
  const sent = await send(stack, { method, path: `/v1/budgets${path}`, ...(body && { body }) });
  expect(sent.status, sent.text).toBeLessThan(202);
  return budgetAnswer.parse(JSON.parse(sent.text));
};
const create = (scope: object, more: object = {}) =>
  budget('POST', '', { scope, cost_limit: LIMIT, ...more });
const urlOf = async (user: string, more: object = {}) =>
  (
    await stack.issue({
      ...{ provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk', external_user: user },
      ...more,
    })
  ).url;
const onSecond = (url: string) => url.replace(stack.gatewayUrls[0] ?? '', stack.gatewayUrls[1] ?? '');
/** A call without an output bound of its own. */
const call = (url: string) =>
  fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hello' }] }),
  });
const errorOf = async (answer: Response) =>
  ((await answer.json()) as { error: Record<string, unknown> }).error;
const statusOf = async (url: string) =>
  (await (await fetch(url.replace('/v1/chat/completions', ''))).json()) as { budgets: object[] };

/** Far less than a call with the longest output costs, and enough for some short ones. */
const LIMIT = 2_000;

describe('a budget that its user may see', () => {
  test('is by default one for a user; any other is hidden by default', async () => {
    const cases = [
      [{ external_user: 'a' }, {}, true],
      [{ external_user: '*' }, { window: 'month' }, true],
      [{ external_user: 'b' }, { visible: false }, false],
      [{ metadata: { team: 'c' } }, {}, false],
      [{ metadata: { team: 'd' } }, { visible: true }, true],
    ] as const;
    for (const [scope, more, visible] of cases) {
      const { id, visible: made } = await create(scope, more);
      expect([made, (await budget('GET', `/${id}`)).visible], JSON.stringify(scope)).toEqual([
        visible,
        visible,
      ]);
      expect((await budget('PATCH', `/${id}`, { visible: !visible })).visible).toBe(!visible);
      await send(stack, { method: 'DELETE', path: `/v1/budgets/${id}` });
    }
  });

  test('lowers the output bound of a call to what is left, over several URLs and gateways', async () => {
    const { id } = await create({ external_user: 'seen' });
    const urls = await Promise.all(Array.from({ length: 4 }, () => urlOf('seen')));
    const first = await call(urls[0] ?? '');
    expect(first.status, await first.clone().text()).toBe(200);
    expect(Number(first.headers.get('x-presign-max-tokens'))).toBeGreaterThan(0);
    let ended = false;
    const watched = (async () => {
      while (!ended) {
        const live = (await budget('GET', `/${id}`)).current?.live;
        expect((live?.spent ?? 0) + (live?.held ?? 0)).toBeLessThanOrEqual(LIMIT);
      }
    })();
    const answers = await Promise.all(
      Array.from({ length: 80 }, (_, i) => {
        const url = urls[i % 4] ?? '';
        return call(i % 2 ? url : onSecond(url));
      }),
    );
    ended = true;
    await watched;
    const refused = await Promise.all(answers.filter(({ ok }) => !ok).map(errorOf));
    for (const error of refused) {
      expect(['cost_held', 'cost_limit_too_low', 'cost_limit_reached']).toContain(error.code);
      expect(error).toMatchObject({ limit_of: 'budget', limit: LIMIT, remaining: expect.any(Number) });
    }
    expect(await statusOf(urls[0] ?? '')).toMatchObject({ budgets: [{ cost_limit: LIMIT }] });
  });

  test('states in headers what is left, and in refusals when it resets', async () => {
    await create({ external_user: 'reader' }, { max_uses: 2, window: 'month' });
    const url = await urlOf('reader', { cost_limit: 1_000_000, max_uses: 10 });
    const first = await call(url);
    const cost = Number(first.headers.get('x-presign-cost'));
    expect(cost).toBeGreaterThan(0);
    expect(Number(first.headers.get('x-presign-cost-remaining'))).toBe(LIMIT - cost);
    expect(first.headers.get('x-presign-uses-remaining')).toBe('1');
    expect((await call(onSecond(url))).headers.get('x-presign-uses-remaining')).toBe('0');
    const [shown] = (await statusOf(url)).budgets as { resets_at: number }[];
    expect(shown).toMatchObject({ max_uses: 2, used: 2, cost_limit: LIMIT, spent: 2 * cost, held: 0 });
    const error = await errorOf(await call(url));
    expect(error).toMatchObject({
      ...{ code: 'uses_exhausted', limit_of: 'budget', limit: 2, used: 2 },
      resets_at: shown?.resets_at,
      message: expect.stringContaining(new Date((shown?.resets_at ?? 0) * 1000).toISOString()),
    });
  });

  test.each([true, false])(
    'is on the pages of a URL and of a bundle if it is visible (%s)',
    async (visible) => {
      const user = `page-${visible}`;
      await create({ external_user: user }, { visible });
      const url = (await urlOf(user)).replace('/v1/chat/completions', '');
      const servers = [{ name: 'a', url: `${upstream.url}/mcp`, transport: 'http' }];
      const bundle = await stack.issueMcp({ servers, external_user: user });
      for (const each of [url, bundle.bundle_url]) {
        const page = await (await fetch(each, { headers: { accept: 'text/html' } })).text();
        expect(page).toContain('What is left');
        expect(page.includes('A budget of this URL and others')).toBe(visible);
        expect(page.includes('$0.002 left')).toBe(visible);
      }
    },
  );

  test('shows and lowers nothing once it is hidden, at every gateway', async () => {
    const { id } = await create({ external_user: 'hidden' });
    const url = await urlOf('hidden');
    expect((await call(url)).status).toBe(200);
    await budget('PATCH', `/${id}`, { visible: false });
    for (const each of [url, onSecond(url)]) {
      const error = await errorOf(await call(each));
      expect(error).toMatchObject({ code: 'cost_limit_too_low', limit_of: 'budget' });
      expect(error).not.toHaveProperty('limit');
      expect(error).not.toHaveProperty('remaining');
      expect((await statusOf(each)).budgets).toEqual([]);
    }
  });
});

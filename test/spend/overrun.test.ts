import { ledger } from '@presign/schema/ledger-tables';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { grantIdOf } from '../chaos/sample.ts';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { flush } from '../harness/stores.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { post, statusOf } from './many-calls.ts';

/** Far more than any bound of the calls here: 3,000,021 microdollars. */
const usage = { prompt_tokens: 140, completion_tokens: 5_000_000, total_tokens: 5_000_140 };
const COST = 3_000_021;
const LIMIT = 1_000;

let upstream: Upstream;
let stack: Stack;

beforeAll(async () => {
  upstream = await startUpstream((seen, response) => {
    const { stream } = JSON.parse(seen.body.toString()) as { stream?: boolean };
    const choices = [{ index: 0, message: { content: 'x' }, finish_reason: 'stop' }];
    if (!stream) {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ choices, usage }));
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(`data: ${JSON.stringify({ choices: [], usage })}\n\ndata: [DONE]\n\n`);
  });
  const pricing = { m: { input: 150_000, output: 600_000 } };
  stack = await startStack({ gateways: 2, providers: { openai: { base_url: upstream.url, pricing } } });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

const body = (stream: boolean) => ({
  model: 'm',
  messages: [{ role: 'user', content: 'Hi' }],
  max_tokens: 100,
  stream,
});
const issue = async (limits: object) =>
  (await stack.issue({ provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk', ...limits }))
    .url;
const onSecond = (url: string) => url.replace(stack.gatewayUrls[0] ?? '', stack.gatewayUrls[1] ?? '');
async function codeOf(url: string) {
  const { status, bytes } = await post(url, body(false));
  return [status, (JSON.parse(bytes.toString()) as { error?: { code: string } }).error?.code];
}
const rowOf = (url: string) =>
  eventually(async () => {
    await stack.issuer.ledger.drainAll();
    const [row] = await stack.db
      .select()
      .from(ledger)
      .where(eq(ledger.grantId, grantIdOf(url)));
    return row;
  });

describe.each([false, true])('a provider that reports more than its bound (streamed: %s)', (stream) => {
  let url: string;
  beforeAll(async () => {
    url = await issue({ cost_limit: LIMIT });
    expect((await post(url, body(stream))).status).toBe(200);
  });

  test('costs the budget the hold, and no more', async () => {
    // 100 tokens of output, and a token for each byte said and what OpenAI may add.
    const { spent, held } = await statusOf(url);
    expect(held).toBe(0);
    expect(spent).toBeGreaterThan(60);
    expect(spent).toBeLessThan(200);
  });

  test('is in the ledger with the cost beyond the hold', async () => {
    const row = await rowOf(url);
    const { spent } = await statusOf(url);
    expect(row).toMatchObject({
      costMicrousd: spent,
      overrunMicrousd: COST - spent,
      outputTokens: 5_000_000,
      outcome: 'settled',
    });
  });

  test('ends the grant on every gateway from the next call on', async () => {
    const before = upstream.seen.length;
    expect(await codeOf(url)).toEqual([403, 'grant_revoked']);
    expect(await codeOf(onSecond(url))).toEqual([403, 'grant_revoked']);
    expect(upstream.seen.length).toBe(before);
  });

  test('is one line of the log, an error that names the grant and the model', () => {
    const lines = stack.logs
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter((line) => line['grant'] === grantIdOf(url) && Number(line['level']) >= 50);
    expect(lines).toMatchObject([
      { level: 50, msg: 'cost over its hold', provider: 'openai', model: 'm', overrun: expect.any(Number) },
    ]);
  });

  test('keeps the grant ended after Redis has lost everything', async () => {
    await rowOf(url);
    await flush(stack.redis);
    const ended = await eventually(async () => {
      const answer = await codeOf(onSecond(url));
      return answer[1] === 'limits_unavailable' ? undefined : answer;
    });
    expect(ended).toEqual([403, 'grant_revoked']);
    expect(await codeOf(url)).toEqual([403, 'grant_revoked']);
  });
});

test('without a cost limit there is no bound to exceed: the whole cost is recorded, and the grant stays valid', async () => {
  const url = await issue({ max_uses: 5 });
  expect((await post(url, body(false))).status).toBe(200);
  expect(await rowOf(url)).toMatchObject({ costMicrousd: COST, overrunMicrousd: 0 });
  expect((await post(url, body(false))).status).toBe(200);
});

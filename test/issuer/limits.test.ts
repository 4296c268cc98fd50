import { LIMIT_NAMES, type LimitRange, type LimitsAnswer, MCP_LIMIT_NAMES } from '@presign/schema';
import { apiKeys } from '@presign/schema/tables';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { addAccount, addApiKey, ownAccount } from './accounts.ts';
import { least, refused, send } from './ask.ts';

let stack: Stack;
let account: string;
beforeAll(async () => {
  stack = await startStack({ providers: {}, issuer: { usageMetadata: ['team'] } });
  account = await ownAccount(stack);
});
afterAll(() => stack.close());

async function limitsOf(apiKey = stack.apiKey): Promise<LimitsAnswer> {
  const sent = await send(stack, { method: 'GET', path: '/v1/limits', apiKey });
  expect(sent.status, sent.text).toBe(200);
  return JSON.parse(sent.text) as LimitsAnswer;
}
/** A key with these fields, as a request would have set them. */
const addKey = (fields: object) => addApiKey(stack, account, fields as Parameters<typeof addApiKey>[2]);
const keyWith = (policy: object) => addKey({ policy });

const SERVER = { name: 'docs', url: 'https://mcp.example.com/mcp', transport: 'http' };
const ISSUING = {
  presign: (fields: object, apiKey: string) => send(stack, { body: { ...least, ...fields }, apiKey }),
  mcp_presign: (fields: object, apiKey: string) =>
    send(stack, { path: '/v2/mcp-presign', body: { servers: [SERVER], ...fields }, apiKey }),
};
const rangesOf = async (kind: keyof typeof ISSUING, apiKey = stack.apiKey) =>
  ((await limitsOf(apiKey))[kind] ?? expect.fail('no limits')) as unknown as Record<string, LimitRange>;
const KINDS = [
  ['presign', ['expires_in', ...LIMIT_NAMES]],
  ['mcp_presign', ['expires_in', ...MCP_LIMIT_NAMES]],
] as const;

test('/v1/limits returns the API key, its account, and the metadata keys by which usage is summed', async () => {
  const other = await addAccount(stack);
  const apiKey = await addApiKey(stack, other.id, { name: 'Night jobs', scopes: ['read'] });
  const { api_key: key, account_name, usage_metadata } = await limitsOf(apiKey);
  expect([key.name, key.scopes, account_name]).toEqual(['Night jobs', ['read'], 'another']);
  expect(usage_metadata).toEqual(['team']);
});

describe.each(KINDS)('the ranges in /v1/limits for %s', (kind, fields) => {
  test.each(fields)('are the ones that %s is validated with', async (field) => {
    const { minimum, maximum, required } = (await rangesOf(kind))[field] ?? expect.fail('no range');
    const ask = async (value: number) => (await ISSUING[kind]({ [field]: value }, stack.apiKey)).status;
    // A URL of this provider without a bound is not issued under a cost_limit.
    expect([await ask(minimum), await ask(maximum), required]).toEqual([200, 200, false]);
    refused(await ISSUING[kind]({ [field]: minimum - 1 }, stack.apiKey), 'invalid_request', field);
    if (maximum < Number.MAX_SAFE_INTEGER)
      refused(await ISSUING[kind]({ [field]: maximum + 1 }, stack.apiKey), 'invalid_request', field);
  });

  test('are narrowed by a policy, and say what a request must have', async () => {
    const highest = { expires_in: 600, max_uses: 5, cost_limit: 1_000, calls_per_minute: 10 };
    const apiKey = await keyWith({ highest });
    const limits = await rangesOf(kind, apiKey);
    for (const [field, maximum] of Object.entries(highest))
      expect(limits[field]?.maximum, field).toBe(maximum);
    const needed = fields.filter((field) => limits[field]?.required);
    expect(needed).toEqual(['cost_limit', 'max_uses', 'calls_per_minute']);
    expect([limits['expires_in']?.default, limits['concurrent_calls']?.default]).toEqual([600, null]);
    const whole = Object.fromEntries(needed.map((field) => [field, limits[field]?.maximum]));
    expect((await ISSUING[kind](whole, apiKey)).status).toBe(200);
    for (const field of needed) {
      const { [field]: _, ...rest } = whole;
      expect((await ISSUING[kind](rest, apiKey)).status, field).toBe(403);
    }
  });
});

test('a key learns its own policy, its scopes and its rate limit', async () => {
  const policy = { providers: ['openai'], required: ['max_uses'] };
  const apiKey = await addKey({
    policy,
    requestsPerMinute: 77,
    expiresAt: new Date(4e12),
  });
  const { api_key, presign, mcp_presign } = await limitsOf(apiKey);
  expect(api_key).toMatchObject({ scopes: ['presign'], policy, requests_per_minute: 77, expires_at: 4e9 });
  expect([presign?.max_uses.required, presign?.cost_limit.required, mcp_presign]).toEqual([
    true,
    false,
    null,
  ]);
  const [row] = await stack.db.select().from(apiKeys).where(eq(apiKeys.id, api_key.id));
  expect(row?.accountId).toBe(account);
});

test.each([
  ['MCP alone', { policy: { providers: ['mcp'] } }, [true, false]],
  ['no scope presign', { scopes: ['read'] }, [true, true]],
  ['no scope at all', { scopes: [] }, [true, true]],
  ['the scope admin', { scopes: ['admin'] }, [false, false]],
])('a key with %s sees whether it may issue', async (_name, fields, isNull) => {
  const { presign, mcp_presign } = await limitsOf(await addKey(fields));
  expect([presign === null, mcp_presign === null]).toEqual(isNull);
});

test('the request limits are those that refuse a request', async () => {
  const { requests } = await limitsOf();
  const list = (limit: number) => send(stack, { method: 'GET', path: `/v1/sessions?limit=${limit}` });
  expect((await list(requests.page_maximum)).status).toBe(200);
  refused(await list(requests.page_maximum + 1), 'invalid_request', 'limit');
  const body = (bytes: number) => send(stack, { body: `${JSON.stringify(least)}${' '.repeat(bytes)}` });
  const own = JSON.stringify(least).length;
  expect((await body(requests.body_bytes - own)).status).toBe(200);
  refused(await body(requests.body_bytes - own + 1), 'body_too_large');
});

test('nothing is shown without an API key, and nothing of a policy that cannot be parsed', async () => {
  refused(await send(stack, { method: 'GET', path: '/v1/limits', apiKey: undefined }), 'unauthenticated');
  const later = await keyWith({ no_such_field: 1 });
  refused(await send(stack, { method: 'GET', path: '/v1/limits', apiKey: later }), 'policy_forbids');
});

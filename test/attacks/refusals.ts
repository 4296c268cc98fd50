import type { ErrorCode } from '@presign/schema';
import {
  claimed,
  count,
  HEAD,
  json,
  LLM_BODIES,
  long,
  MCP_BODIES,
  met,
  ofLlm,
  ofMcp,
  paths,
  type Refused,
  type Share,
  TOKENS,
  talk,
  talksAfter,
  toolCall,
} from './refused-requests.ts';

const lengthOf = (bytes: number) => [json, `Content-Length: ${bytes}`];
const MIB = 1024 * 1024;
const bodies = (code: ErrorCode): Refused[] => [
  ...LLM_BODIES.filter((each) => each.code === code).map(({ what, ask, body }) =>
    ofLlm(what, (url, share) => ({ url, headers: [json], body: body(share) }), ask),
  ),
  ...MCP_BODIES.filter((each) => each.code === code).map(({ what, ask, body }) =>
    ofMcp(what, (url, share) => ({ url, headers: [json], body: body(share) }), ask),
  ),
];
const calls = (share: Share, name = 'x') =>
  JSON.stringify(Array.from({ length: count(98, share) }, () => toolCall(name)));
const PAST = '2020-01-01T00:00:00Z';
const CONFIG = { config: { max_tokens: 5 } };

/** Codes that no call meets before its admission, and why. */
type Never = 'the issuer answers with it' | 'after admission' | 'a store is away' | 'a fault of the gateway';

/** Codes of the issuer. */
const OF_ISSUER = [
  'unauthenticated',
  'forbidden',
  'policy_forbids',
  'account_limit',
  'session_conflict',
  'idempotency_conflict',
  'last_admin_key',
  'own_account',
  'virtual_key_revoked',
  'grant_ended',
  'api_key_ended',
  'budget_deleted',
  'account_deleted',
  'budget_conflict',
  'revision_mismatch',
] as const;

/** Each error code, with the requests of holders and strangers that a gateway refuses with it before it admits them. */
export const REFUSALS: Readonly<Record<ErrorCode, readonly Refused[] | Never>> = {
  ...(Object.fromEntries(OF_ISSUER.map((code) => [code, 'the issuer answers with it'])) as Record<
    (typeof OF_ISSUER)[number],
    Never
  >),
  invalid_request: [
    ...bodies('invalid_request'),
    ofLlm('two Host headers', (url, share) => ({ url, headers: ['Host: b', `X: ${long(share)}`] })),
    ofLlm('many headers', (url, share) => ({
      ...{ url, headers: ['Host: b', ...Array.from({ length: count(1_000, share) }, () => 'a: b')] },
    })),
    ofLlm('Upgrade', (url, share) => ({ url, headers: [`Upgrade: ${long(share)}`, 'Connection: upgrade'] })),
    ofLlm('an unknown version of HTTP', (url, share) => ({
      url,
      version: '2.0',
      headers: [`X: ${long(share)}`],
    })),
    ofLlm(
      'a body that is not coded as it says',
      (url, share) => ({ url, headers: [json, 'Content-Encoding: gzip'], body: long(share, 'x', 60_000) }),
      CONFIG,
    ),
    ofMcp('Mcp-Method', (url, share) => ({
      url,
      headers: [json, `Mcp-Method: ${long(share)}`],
      body: '{"id":1,"jsonrpc":"2.0","method":"ping"}',
    })),
    ofMcp('Mcp-Name', (url, share) => ({
      url,
      headers: [json, `Mcp-Name: =?base64?${long(share, 'YWJj', HEAD / 4)}?=`],
      body: JSON.stringify(toolCall('x')),
    })),
    ofMcp('an unknown event', (url, share) => ({
      url,
      method: 'GET',
      headers: ['Accept: text/event-stream', `Last-Event-ID: ${long(share)}`],
    })),
  ],
  invalid_json: [
    ofLlm(
      'no JSON',
      (url, share) => ({ url, headers: [json], body: `{${long(share, '"a":1,', 900)}` }),
      CONFIG,
    ),
    ofMcp('no JSON', (url, share) => ({ url, headers: [json], body: long(share, '[', 190) })),
  ],
  unknown_provider: [
    { what: 'a provider that is gone', request: claimed((share) => ({ prv: 'gone', ...paths(share) })) },
  ],
  token_invalid: Object.entries(TOKENS).map(([what, request]) => ({ what, request })),
  token_expired: [
    { what: 'an LLM URL', request: claimed((share) => ({ exp: PAST, ...paths(share) })) },
    met(
      'an MCP URL, whose ids are read',
      async ({ mcp, signed }) => signed(await mcp(), { exp: PAST }),
      (url, share) => ({ url, headers: [json], body: calls(share) }),
    ),
  ],
  cost_limit_reached: [talksAfter('nothing left to spend', { cost_limit: 0 })],
  cost_limit_too_low: [talksAfter('too little left to spend', { cost_limit: 1 })],
  token_limit_reached: [met('no tokens left', async ({ llm, tokens }) => llm(await tokens(0)))],
  token_limit_too_low: [met('too few tokens left', async ({ llm, tokens }) => llm(await tokens(1)))],
  account_suspended: [met('a suspended account', ({ suspended }) => suspended())],
  grant_revoked: [
    talksAfter('an LLM URL', {}, async ({ call, revoke }, url) => {
      await call(url);
      await revoke(url);
    }),
  ],
  uses_exhausted: [talksAfter('no uses left', { max_uses: 1 }, ({ call }, url) => call(url))],
  path_not_allowed: [
    ofLlm('another path', (url, share) => ({ url: `${url}${long(share, '/a', 6_000)}` })),
    ofLlm('an encoded path', (url, share) => ({ url: `${url}/${long(share, '%3A', 4_000)}` })),
    ofLlm('patterns of stars', (url, share) => ({ url: url.replace('/x', `/${long(share, 'ab', 5_000)}`) }), {
      path: ['/v1/x', ...Array.from({ length: 20 }, (_, i) => `/v1/*a*a*a*a*a*a*b${i}`)],
    }),
  ],
  method_not_allowed: [
    ofLlm('another method', (url, share) => ({ url: `${url}?${long(share)}`, method: 'PUT' })),
  ],
  sockets_not_allowed: [
    ofLlm('a handshake', (url, share) => ({
      ...{ url: `${url}?${long(share)}`, method: 'GET' },
      headers: ['Upgrade: websocket', 'Connection: upgrade'],
    })),
  ],
  model_not_allowed: bodies('model_not_allowed'),
  origin_not_allowed: [
    ofLlm(
      'a long origin',
      (url, share) => ({ url, headers: [`Origin: http://${long(share)}`], body: '{}' }),
      {
        bind: { origins: Array.from({ length: 20 }, (_, i) => `https://a${i}.example`) },
      },
    ),
  ],
  address_not_allowed: [
    met(
      'a long chain of proxies',
      async ({ llm, behindProxy }) => behindProxy(await llm({ bind: { ip_ranges: ['10.0.0.0/8'] } })),
      (url, share) => ({
        url,
        headers: [`X-Forwarded-For: ${long(share, '127.0.0.1,', 1_100)}127.0.0.1`],
        body: '{}',
      }),
    ),
  ],
  field_not_allowed: bodies('field_not_allowed'),
  tool_not_allowed: bodies('tool_not_allowed'),
  argument_not_allowed: bodies('argument_not_allowed'),
  not_found: [
    ofLlm('no route', (url, share) => ({ url: `${new URL(url).origin}/${long(share, '/a', 6_000)}` })),
    ofMcp('an unknown session', (url, share) => ({
      url,
      headers: [json, `Mcp-Session-Id: ${long(share)}`],
      body: '{}',
    })),
    ofMcp('an unknown endpoint', (url, share) => ({
      url: `${url}&ep=${long(share)}`,
      headers: [json],
      body: '{}',
    })),
  ],
  method_not_supported: [
    ofLlm('to the URL itself', (url, share) => ({
      url: `${new URL(url).origin}/llm/t/${long(share)}`,
      method: 'PUT',
    })),
    ofMcp('to an MCP server', (url, share) => ({ url: `${url}&x=${long(share)}`, method: 'PUT' })),
  ],
  // Nothing of these bodies is sent.
  body_too_large: [
    ofLlm(
      'more than a gateway reads',
      (url, share) => ({ url, headers: lengthOf(64 * MIB * share) }),
      CONFIG,
    ),
    ofLlm('more than the URL allows', (url, share) => ({ url, headers: lengthOf(16 * MIB * share) }), {
      max_body_bytes: 1_000,
    }),
    ofMcp('more than a gateway reads', (url, share) => ({ url, headers: lengthOf(64 * MIB * share) })),
  ],
  unsupported_media_type: [
    ofLlm(
      'a form',
      (url, share) => ({
        url,
        headers: [`Content-Type: multipart/form-data; boundary=${long(share)}`, 'Content-Length: 1000'],
      }),
      CONFIG,
    ),
    ofLlm(
      'a list',
      (url, share) => ({ url, headers: [json], body: `[${long(share, '1,', 1_900)}1]` }),
      CONFIG,
    ),
    ofLlm(
      'an unknown coding',
      (url, share) => ({ url, headers: [json, `Content-Encoding: ${long(share)}`], body: '{}' }),
      CONFIG,
    ),
  ],
  price_unknown: [
    ofLlm(
      'a model without a price',
      (url, share) => ({ url, headers: [json], body: talk(share, { model: 'no-such-model' }) }),
      { cost_limit: 1_000_000 },
    ),
  ],
  cost_unbounded: bodies('cost_unbounded'),
  tokens_unbounded: [
    ofLlm(
      'an unknown field',
      (url, share) => ({ url, headers: [json], body: talk(share, { surprise: 1 }) }),
      { tokens_per_minute: 1_000_000 },
    ),
  ],
  token_rate_too_low: [talksAfter('more than a minute has', { tokens_per_minute: 1 })],
  rate_limited: [talksAfter('the calls of a minute', { calls_per_minute: 1 }, ({ call }, url) => call(url))],
  daily_rate_limited: [talksAfter('the calls of a day', { calls_per_day: 1 }, ({ call }, url) => call(url))],
  token_rate_limited: [
    talksAfter('the tokens of a minute', { tokens_per_minute: 16_000 }, ({ hang }, url) => hang(url)),
  ],
  concurrency_limited: [talksAfter('calls at once', { concurrent_calls: 1 }, ({ hang }, url) => hang(url))],
  cost_held: [talksAfter('money that is held', { cost_limit: 2_300 }, ({ hang }, url) => hang(url))],
  tokens_held: [
    met('tokens that are held', async ({ llm, tokens, hang }) => {
      const url = await llm(await tokens(20_000));
      await hang(url);
      return url;
    }),
  ],
  internal_error: 'a fault of the gateway',
  upstream_unreachable: [
    met('an upstream that refuses connections', async ({ llm, call }) => {
      const url = await llm({ provider: 'refusing' });
      // Each failure makes the next calls wait for longer.
      for (let i = 1; i <= 3; i++) {
        await call(url);
        if (i < 3) await new Promise((resolve) => setTimeout(resolve, 1_000 * i));
      }
      return url;
    }),
  ],
  upstream_auth_failed: 'after admission',
  overloaded: [
    met(
      'no memory for a body',
      async ({ llm, atLittleMemory }) => atLittleMemory(await llm(CONFIG)),
      (url, share) => ({ url, headers: [json], body: long(share, 'x', 60_000) }),
    ),
  ],
  limits_unavailable: 'a store is away',
  database_unavailable: 'a store is away',
  upstream_timeout: 'after admission',
};

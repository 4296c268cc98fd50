import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';
import { askRaw } from '../harness/raw-http.ts';
import type { Stack } from '../harness/stack.ts';
import { countSteps } from '../harness/steps.ts';
import { REFUSALS } from './refusals.ts';
import { chat, fields, GEMINI, type Raw, type Share, type World } from './refused-requests.ts';

// Blocks are counted in code that is compiled from now on, so nothing of the services is imported before.
const steps = await countSteps();
const { startStack } = await import('../harness/stack.ts');
const { startUpstream } = await import('../harness/upstream.ts');
const { least, send } = await import('../issuer/ask.ts');
const { createVirtualKey } = await import('../issuer/virtual-keys.ts');
const { generateSigningKey, readSigningKey, signToken } = await import('@presign/crypto');
const { ERRORS } = await import('@presign/schema');

const ROOT = join(import.meta.dirname, '../..');
const KIB = 1024;

let stack: Stack;
let upstream: Awaited<ReturnType<typeof startUpstream>>;
let bystander: string;
let proxied: string;
let small: string;
/** Answers that are due to calls that stay under way. */
const hanging: ServerResponse[] = [];
beforeAll(async () => {
  upstream = await startUpstream((seen, response) => {
    if (seen.headers['x-hang']) return void hanging.push(response);
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}');
  });
  const known = Object.fromEntries(['openai', 'google'].map((id) => [id, { base_url: upstream.url }]));
  const refusing = { extends: 'openai', base_url: `http://127.0.0.1:${await freePort()}` };
  stack = await startStack({ providers: { ...known, refusing } });
  proxied = await stack.addGateway({ trustedProxies: ['127.0.0.0/8'] });
  small = await stack.addGateway({ maxHeldBodyBytes: 16 * KIB });
  bystander = (await stack.issue({ ...least })).url;
});
afterAll(async () => {
  steps.stop();
  for (const response of hanging) response.end();
  await stack.close();
  await upstream.close();
});

/** The steps of some work without those of sweeps that run at the same time. Enough is measured once they are few enough. */
async function fewest(work: () => Promise<unknown>, enough = 0): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < (enough ? 40 : 4) && least > enough; i++)
    least = Math.min(least, await steps.during(work));
  return least;
}

const claimsOf = (url: string) => {
  const payload = /v4\.public\.([^./&]+)/.exec(url)?.[1] ?? '';
  return JSON.parse(String(Buffer.from(payload, 'base64url').subarray(0, -64))) as Record<string, unknown>;
};

const world: World = {
  llm: async (more) => (await stack.issue({ ...least, ...more })).url,
  mcp: async (more) => {
    const server = { name: 'a', url: `${upstream.url}/mcp`, transport: 'http', ...more };
    return (await stack.issueMcp({ servers: [server] })).servers.a?.url ?? '';
  },
  signed: (url, claims, by = 'issuer') => {
    const key = readSigningKey(by === 'issuer' ? stack.keys.signing : generateSigningKey());
    return url.replace(/v4\.public\.[^/&]+/, signToken({ ...claimsOf(url), ...claims }, key));
  },
  call: async (url, body = chat()) =>
    (await fetch(url, { method: 'POST', body: JSON.stringify(body) })).text(),
  hang: async (url) => {
    const before = hanging.length;
    void fetch(url, {
      method: 'POST',
      headers: { 'x-hang': '1', 'content-type': 'application/json' },
      body: JSON.stringify(
        chat({
          messages: Array.from({ length: 400 }, () => ({ role: 'user', content: 'x' })),
          max_tokens: 100,
        }),
      ),
    }).catch(() => {});
    await eventually(async () => hanging.length > before);
  },
  revoke: (url) => send(stack, { method: 'DELETE', path: `/v1/sessions/${claimsOf(url).sub}` }),
  suspended: async () => {
    const made = await send(stack, { path: '/v1/accounts', body: { name: 'customer' } });
    const { id, api_key } = JSON.parse(made.text) as { id: string; api_key: { key: string } };
    const { url } = JSON.parse((await send(stack, { apiKey: api_key.key, body: least })).text) as {
      url: string;
    };
    await send(stack, { path: `/v1/accounts/${id}/suspend` });
    return url;
  },
  tokens: async (most) => {
    const external_user = randomUUID();
    await send(stack, { path: '/v1/budgets', body: { scope: { external_user }, tokens: most } });
    return { external_user };
  },
  behindProxy: (url) => proxied + url.slice(new URL(url).origin.length),
  atLittleMemory: (url) => small + url.slice(new URL(url).origin.length),
};

function bytesOf({ url, method = 'POST', version = '1.1', headers = [], body = '' }: Raw): string {
  const statesLength = body === '' || headers.some((each) => each.startsWith('Content-Length'));
  const lines = [
    `${method} ${url.slice(new URL(url).origin.length)} HTTP/${version}`,
    ...['Host: g', ...headers, ...(statesLength ? [] : [`Content-Length: ${Buffer.byteLength(body)}`])],
  ];
  return `${lines.join('\r\n')}\r\n\r\n${Buffer.from(body).toString('latin1')}`;
}

/** Sends a request, and says why it is refused. */
async function codeOf(raw: Raw): Promise<string | undefined> {
  const { headers } = await askRaw(new URL(raw.url).origin, bytesOf(raw));
  return headers.find(([name]) => name === 'x-presign-code')?.[1];
}

const WALKED = Object.entries(REFUSALS).flatMap(([code, refused]) =>
  typeof refused === 'string' ? [] : refused.map((each) => [code, each.what, each] as const),
);

describe('a request that is refused before its admission', () => {
  test.each(WALKED)('%s for %s takes time in proportion to its length', async (code, _what, { request }) => {
    const raw = await request(world);
    // The first call loads and compiles the policy.
    expect(await codeOf(raw(0.5))).toBe(code);
    const half = await fewest(() => codeOf(raw(0.5)));
    expect(await fewest(() => codeOf(raw(1)), 2 * half)).toBeLessThanOrEqual(2 * half);
    const beside = fetch(bystander, { method: 'POST', body: JSON.stringify(chat()) });
    const refused = await Promise.all(Array.from({ length: 10 }, () => codeOf(raw(1))));
    expect(new Set(refused)).toEqual(new Set([code]));
    expect((await beside).status).toBe(200);
  });

  test('has an entry here for each error code, and no issuer code is also a gateway code', () => {
    expect(Object.keys(REFUSALS).sort()).toEqual(Object.keys(ERRORS).sort());
    const roots = ['apps/gateway/src', 'packages/limits/src'].map((each) => join(ROOT, each));
    const files = roots.flatMap((root) =>
      readdirSync(root, { recursive: true, encoding: 'utf8' })
        .filter((name) => name.endsWith('.ts'))
        .map((name) => readFileSync(join(root, name), 'utf8')),
    );
    const ofIssuer = Object.entries(REFUSALS).filter(([, each]) => each === 'the issuer answers with it');
    for (const [code] of ofIssuer) expect(files.filter((text) => text.includes(`'${code}'`))).toEqual([]);
  });
});

/** Refusals by a URL's token, path, method and headers, before anything is read. */
const UNREAD: readonly (readonly [string, 'llm' | 'mcp', (url: string) => Raw])[] = [
  ['path_not_allowed', 'llm', (url) => ({ url: `${url}/x` })],
  ['method_not_allowed', 'llm', (url) => ({ url, method: 'PUT' })],
  ['token_expired', 'llm', (url) => ({ url: world.signed(url, { exp: '2020-01-01T00:00:00Z' }) })],
  ['not_found', 'mcp', (url) => ({ url, headers: ['Mcp-Session-Id: x'] })],
];

test.each(UNREAD)('%s of a URL (%s) draws on the read quota', async (code, kind, raw) => {
  const url = await world[kind](kind === 'llm' ? { config: { max_tokens: 5 } } : {});
  const other = await world.llm();
  // Its clock stands still, so it refuses a token of a minute later.
  const now = Date.now();
  const stopped = await stack.addGateway({ now: () => now });
  const still = (each: string) => stopped + each.slice(new URL(each).origin.length);
  // These bodies leave room for at most 112 refusals. They are read at once: a worker's time would count, which is no fixed one.
  const body = `[${' '.repeat(56 * KIB - 2)}1`;
  const spend = () => fetch(still(url), { method: 'POST', body }).then((each) => each.text());
  for (let i = 0; i < 1_010; i += 10) await Promise.all(Array.from({ length: 10 }, spend));
  const codes: unknown[] = [];
  while (codes.at(-1) !== 'rate_limited' && codes.length < 200) {
    const asked = raw(url);
    codes.push(await codeOf({ ...asked, url: still(asked.url) }));
  }
  expect(new Set(codes)).toEqual(new Set([code, 'rate_limited']));
  // Another URL has its own quota.
  expect(await codeOf({ url: `${still(other)}/x` })).toBe('path_not_allowed');
});

/** A request of the issuer that is refused, with a policy of the same size. */
const ISSUER: readonly {
  readonly what: string;
  readonly code: string;
  readonly policy: (share: Share) => object;
  readonly ask: (share: Share) => object;
  /** The config of a virtual key that the request names. */
  readonly config?: (share: Share) => object;
}[] = [
  {
    what: 'the config of a virtual key beside the one of a policy',
    code: 'policy_forbids',
    policy: (share) => ({ config: { max_tokens: 5, ...fields(199, share, 'p') } }),
    ask: () => ({}),
    config: (share) => ({ ...fields(199, share), max_output_tokens: 9 }),
  },
  {
    what: 'a config beside the one of a policy',
    code: 'policy_forbids',
    policy: (share) => ({ config: { max_tokens: 5, ...fields(199, share, 'p') } }),
    ask: (share) => ({ config: { ...fields(199, share), max_output_tokens: 9 } }),
  },
  {
    what: 'a config for Gemini beside the one of a policy',
    code: 'policy_forbids',
    policy: (share) => ({ config: { max_tokens: 5, generationConfig: fields(900, share, 'p') } }),
    ask: (share) => ({
      ...GEMINI,
      config: { ...fields(199, share), generation_config: { max_output_tokens: 9 } },
    }),
  },
  {
    what: 'fields that a policy does not allow',
    code: 'policy_forbids',
    policy: () => ({ allowed_fields: Array.from({ length: 100 }, (_, i) => `${i}${'a'.repeat(200)}`) }),
    ask: (share) => ({ config: fields(200, share) }),
  },
  {
    what: 'a config under which no call has a bound',
    code: 'invalid_request',
    policy: () => ({ providers: ['google'] }),
    ask: (share) => ({
      ...GEMINI,
      cost_limit: 1_000_000,
      config: { max_tokens: 'x', generationConfig: fields(900, share) },
    }),
  },
];

describe('a request for a URL that is refused', () => {
  test.each(ISSUER)('for $what takes time in proportion to its length', async (row) => {
    const { code, policy, ask, config } = row;
    const { client_api_key, ...rest } = least;
    const refusal = async (key: string, body: object) => {
      const answer = await stack.presign(body, { authorization: `Bearer ${key}` });
      expect(await answer.json()).toMatchObject({ error: { code } });
    };
    const measure = async (share: Share, enough?: number) => {
      const key = await keyWith(policy(share));
      const own = config
        ? { virtual_key: (await createVirtualKey(stack, { config: config(share) })).id }
        : { client_api_key };
      const body = { ...rest, ...own, ...ask(share) };
      await refusal(key, body);
      return fewest(() => refusal(key, body), enough);
    };
    const half = await measure(0.5);
    expect(await measure(1, 2 * half)).toBeLessThanOrEqual(2 * half);
  });
});

async function keyWith(policy: object): Promise<string> {
  const answer = await fetch(`${stack.issuerUrl}/v1/api-keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${stack.apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'walk', scopes: ['presign'], policy }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(text);
  return (JSON.parse(text) as { key: string }).key;
}

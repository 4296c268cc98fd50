import { createServer, type ServerResponse } from 'node:http';
import { generateEncryptionKey, readEncryptionKeys } from '@presign/crypto';
import { keys } from '@presign/limits';
import { ledger } from '@presign/schema/ledger-tables';
import { eq } from 'drizzle-orm';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Providers, startProviders } from '../gateway/providers.ts';
import { eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { send } from '../issuer/ask.ts';
import { grantIn, outcomes, post, toolCall, urlOf } from '../mcp/holder.ts';

const PRICE = { input: 1_000_000, output: 4_000_000 };
const BODY = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x' }], max_tokens: 20 });
const USAGE = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
const COST = 30;
const USER = 'shared';
const answer = (response: ServerResponse) => {
  const body = JSON.stringify({ model: 'm', choices: [], usage: USAGE });
  response.writeHead(200, { 'content-type': 'application/json' }).end(body);
};

let providers: Providers;
let stack: Stack;
let loopedPort: number;
let origins: Record<string, string>;
/** Addresses of gateways: the usual one, one that calls only public addresses, one without the keys of credentials. */
let gateways: Record<'usual' | 'guarded' | 'keyless', string>;

beforeAll(async () => {
  providers = await startProviders();
  loopedPort = await freePort();
  origins = {
    reachable: providers.url,
    refusing: `http://127.0.0.1:${await freePort()}`,
    nowhere: 'http://name.that.cannot.be.invalid',
    plain: providers.url.replace('http:', 'https:'),
    unroutable: 'http://[100::1]',
    looped: `http://127.0.0.1:${loopedPort}`,
  };
  const provider = (base_url: string) => ({ extends: 'openai', base_url, pricing: { m: PRICE } });
  stack = await startStack({
    providers: Object.fromEntries(Object.entries(origins).map(([id, url]) => [id, provider(url)])),
  });
  gateways = {
    usual: stack.gatewayUrls[0] ?? '',
    guarded: await stack.addGateway({ allowPrivateUpstreams: false }),
    keyless: await stack.addGateway({ encryptionKeys: readEncryptionKeys(generateEncryptionKey()) }),
  };
  const budget = {
    scope: { external_user: USER },
    cost_limit: 1_000_000,
    max_uses: 100,
    tokens: 100_000,
  };
  const created = await send(stack, { path: '/v1/budgets', body: budget });
  expect(created.status, created.text).toBe(201);
});
afterAll(async () => {
  await stack.close();
  await providers.close();
});

type Way = { readonly upstream: string; readonly gateway: keyof typeof gateways; readonly code: string };

/** Every way in which a call surely does not leave a gateway, which a test can cause with real sockets. */
const WAYS: readonly (readonly [string, Way])[] = [
  ['refuses the connection', { upstream: 'refusing', gateway: 'usual', code: 'upstream_unreachable' }],
  ['has no address', { upstream: 'nowhere', gateway: 'usual', code: 'upstream_unreachable' }],
  ['speaks no TLS', { upstream: 'plain', gateway: 'usual', code: 'upstream_unreachable' }],
  ['has no route to it', { upstream: 'unroutable', gateway: 'usual', code: 'upstream_unreachable' }],
  ['has a private address', { upstream: 'reachable', gateway: 'guarded', code: 'upstream_unreachable' }],
  [
    'needs a key that cannot be decrypted',
    { upstream: 'reachable', gateway: 'keyless', code: 'internal_error' },
  ],
];

const limits = { max_uses: 1, cost_limit: 100_000, external_user: USER };
const issue = async (provider: string, more: object = limits) =>
  (await stack.issue({ provider, path: '/v1/chat/completions', client_api_key: 'sk-real', ...more })).url;
const issueTool = async (url: string, more: object = limits) =>
  urlOf(
    await stack.issueMcp({ servers: [{ name: 'a', url: `${url}/mcp`, transport: 'http' }], ...more }),
    'a',
  );
const via = (url: string, gateway: keyof typeof gateways) => url.replace(gateways.usual, gateways[gateway]);

async function call(url: string) {
  const { statusCode, headers, body } = await request(url, { method: 'POST', body: BODY });
  const { error } = (await body.json()) as { error?: { code: string } };
  return { is: error?.code ?? statusCode, status: statusCode, wait: headers['retry-after'] };
}

const grantOf = (url: string) =>
  grantIn(new URL(url).searchParams.get('token') ?? new URL(url).pathname.split('/')[3] ?? '');

/** The figures of every budget that a URL draws on, in Redis. */
async function figuresOf(url: string) {
  const { id, partition } = grantOf(url);
  const doc = await stack.redis.hget(keys.grant(partition, id), 'doc');
  const { budget: ids } = JSON.parse(doc ?? '') as { budget: string[] };
  const fields = ['used', 'settled', 'held', 'returned', 'tokens', 'tokens_held'] as const;
  const figures = await Promise.all(
    ids.map((each) => stack.redis.hmget(keys.budget(partition, each), ...fields)),
  );
  return figures.map((each) => each.map((value) => Number(value ?? 0)));
}

async function sumOf(url: string) {
  await stack.issuer.ledger.drainAll();
  const rows = await stack.db
    .select()
    .from(ledger)
    .where(eq(ledger.grantId, grantOf(url).id));
  const sum = (of: (row: (typeof rows)[number]) => number) => rows.reduce((all, row) => all + of(row), 0);
  return {
    rows: rows.length,
    uses: sum((row) => row.uses),
    cost: sum((row) => Number(row.costMicrousd ?? 0)),
  };
}

const NOTHING = [0, 0, 0, 0, 0, 0];

describe.each(WAYS)(
  'if an upstream %s and so certainly got nothing',
  (_what, { upstream, gateway, code }) => {
    test('an LLM call is refunded in all its budgets, and the refund does not count toward the bound', async () => {
      const url = via(await issue(upstream), gateway);
      expect(await call(url)).toMatchObject({ is: code });
      await eventually(async () =>
        (await figuresOf(url)).flat().every((each) => each === 0) ? true : undefined,
      );
      const figures = await figuresOf(url);
      expect(figures.length).toBeGreaterThan(1);
      for (const each of figures) expect(each).toEqual(NOTHING);
      expect(await sumOf(url)).toMatchObject({ uses: 0, cost: 0 });
    });

    test('an MCP call is refunded, too', async () => {
      const url = via(await issueTool(origins[upstream] ?? ''), gateway);
      // The LLM call before it has found this upstream away.
      const heard = await eventually(async () => {
        const each = await post(url, toolCall('run'));
        return each.status === 503 ? undefined : each;
      });
      expect(outcomes(heard)).toEqual([code]);
      await eventually(async () =>
        (await figuresOf(url)).flat().every((each) => each === 0) ? true : undefined,
      );
      for (const each of await figuresOf(url)) expect(each).toEqual(NOTHING);
      expect(await sumOf(url)).toMatchObject({ uses: 0, cost: 0 });
    });
  },
);

test('500 calls to a provider that refuses connections cost nothing, few are tried, and calls pass when it returns', async () => {
  const url = await issue('looped', { cost_limit: 100_000 });
  const other = await issue('reachable', { cost_limit: 100_000 });
  providers.answer = (_seen, response) => answer(response);
  const statuses = new Map<number, number>();
  for (let i = 0; i < 25; i++) {
    const answers = await Promise.all(Array.from({ length: 20 }, () => call(url)));
    for (const { is, status, wait } of answers) {
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      expect([is, status === 503 ? Number(wait) : 1]).toEqual(['upstream_unreachable', expect.any(Number)]);
      if (status === 503) expect(Number(wait)).toBeGreaterThan(0);
    }
    // The host of others is not away.
    expect(await call(other)).toMatchObject({ is: 200 });
  }
  expect([...statuses.keys()].sort()).toEqual([502, 503]);
  expect(statuses.get(503)).toBeGreaterThan(200);
  const away = await sumOf(url);
  expect(away).toMatchObject({ rows: statuses.get(502), uses: 0, cost: 0 });

  const back = createServer((_asked, response) => answer(response)).listen(loopedPort, '127.0.0.1');
  await eventually(async () => ((await call(url)).is === 200 ? true : undefined));
  expect(await call(url)).toMatchObject({ is: 200 });
  await eventually(async () => ((await sumOf(url)).cost === 2 * COST ? true : undefined));
  back.close();
  back.closeAllConnections();
});

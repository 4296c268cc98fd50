import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { type Case, runCases, type Saw } from './cases.ts';
import { rowOf } from './client-table.ts';
import { type LlmClient, llmClients, PATHS } from './llm-clients.ts';
import { CALLS, failingKey, type MockProviders, SAYS, startMockProviders } from './mock-providers.ts';

const toolchains = inject('toolchains');
const js = 'at' in toolchains.js ? toolchains.js.at : undefined;

let mocks: MockProviders;
let stack: Stack;
/** A gateway whose clock is a day ahead. */
let tomorrow: string;

beforeAll(async () => {
  if (js === undefined) return;
  mocks = await startMockProviders(js);
  stack = await startStack({ providers: mocks.file });
  tomorrow = await stack.addGateway({ now: () => Date.now() + 86_400_000 });
});
afterAll(async () => {
  await stack?.close();
  await mocks?.close();
});

const ANSWERS = { plain: SAYS, stream: SAYS, tools: CALLS };

/** The status and the message that a program reads in each refusal. */
const REFUSALS = {
  uses_exhausted: [403, 'This URL has no uses left (max_uses 1).'],
  token_expired: [401, 'This URL has expired.'],
  grant_revoked: [403, 'This URL has been revoked.'],
  cost_limit_reached: [402, 'This URL has spent its cost_limit of 0 microdollars ($0.00).'],
  cost_limit_too_low: [402, 'and 1 microdollar ($0.000001) is left'],
  rate_limited: [429, 'This URL has no calls left (1 a minute).'],
  path_not_allowed: [403, 'This URL allows /v1/other, not'],
} as const;

test.skipIf(js === undefined)('the clients are installed', () => {
  expect(llmClients(toolchains)).not.toEqual([]);
});

/** The mocks of the providers come with the JavaScript clients. */
describe.skipIf(js === undefined).each(llmClients(toolchains))('$name', (client) => {
  let saw: ReadonlyMap<string, Saw>;
  let urls: Awaited<ReturnType<typeof issueFor>>;
  beforeAll(async () => {
    urls = await issueFor(client);
    saw = await runCases(client.command, casesOf(urls));
  });

  test.each(Object.entries(ANSWERS))('gets an answer: %s', (name, answer) => {
    expect(saw.get(name)).toEqual({ case: name, answer });
  });

  test.each(Object.entries(REFUSALS))(
    'is refused with %s, and shows the reason',
    (code, [status, message]) => {
      const { text = '', fields = '' } = saw.get(code)?.error ?? {};
      const isDead = code === 'token_expired' && client.provider === 'anthropic';
      expect(fields + text).toContain(isDead ? '403' : String(status));
      expect(fields + text).toContain(message);
      expect(fields + text).toContain(code);
    },
  );

  test('is refused a stream, and shows the reason', () => {
    const { text = '', fields = '' } = saw.get('stream refused')?.error ?? {};
    expect(fields + text).toContain(REFUSALS.token_expired[1]);
  });

  test('sends no refused call to the provider, however often it retries', async () => {
    const codes = ['token_expired', 'grant_revoked', 'cost_limit_reached', 'cost_limit_too_low'] as const;
    expect(codes.map((code) => callsWith(urls[code].key))).toEqual([0, 0, 0, 0]);
    expect(callsWith(urls.uses_exhausted.key)).toBe(1);
    expect(await usesOf(urls.uses_exhausted.url)).toBe(1);
  });

  const retries = !rowOf(client.name)?.except.includes('no retry');

  test.skipIf(retries)('does not retry after a 503 of the provider, which costs no use', async () => {
    expect(saw.get('retried')?.error?.text).toContain('The mock fails.');
    expect(await usesOf(urls.retried.url)).toBe(0);
  });

  test.skipIf(!retries)('retries after a 503 of the provider, and the answer costs one use', async () => {
    expect(saw.get('retried')).toEqual({ case: 'retried', answer: SAYS });
    expect(callsWith(urls.retried.key)).toBe(2);
    expect(await usesOf(urls.retried.url)).toBe(1);
  });

  test('after a 500 that took the last use behaves as the table of clients says', () => {
    const { answer, error: { text = '', fields = '' } = {} } = saw.get('failed') ?? {};
    const caught = fields + text;
    const cause = caught.includes('ended with status 500 (provider_error)') ? 'cause' : undefined;
    const shown = cause ?? (caught.includes('The mock fails.') ? '500' : answer === SAYS && 'answer');
    expect(shown).toBe(rowOf(client.name)?.failed);
    // Google does not bill a 500, so its use is given back.
    expect(callsWith(urls.failed.key)).toBe(shown === 'answer' ? 2 : 1);
    expect(shown === 'answer').toBe(client.provider === 'google' && retries);
  });
});

/** A URL for each case of a client. */
async function issueFor({ provider }: LlmClient) {
  const issue = async (
    limits: object = {},
    key = failingKey(503, 0),
    path: readonly string[] = PATHS[provider],
  ) => {
    const { url, session_id } = await stack.issue({ provider, path, client_api_key: key, ...limits });
    return { url, session_id, key };
  };
  const grant_revoked = await issue();
  await fetch(`${stack.issuerUrl}/v1/sessions/${grant_revoked.session_id}`, {
    method: 'DELETE',
    headers: { authorization: `Bearer ${stack.apiKey}` },
  });
  const expired = await issue();
  const elsewhere = await issue({}, undefined, ['/v1/other']);
  return {
    plain: await issue({ max_uses: 1 }),
    stream: await issue({ max_uses: 1 }),
    tools: await issue(),
    uses_exhausted: await issue({ max_uses: 1 }),
    token_expired: { ...expired, url: expired.url.replace(stack.gatewayUrls[0] ?? '', tomorrow) },
    grant_revoked,
    cost_limit_reached: await issue({ cost_limit: 0 }),
    cost_limit_too_low: await issue({ cost_limit: 1 }),
    rate_limited: await issue({ calls_per_minute: 1 }),
    path_not_allowed: { ...elsewhere, url: elsewhere.url.replace('/v1/other', PATHS[provider][0]) },
    retried: await issue({ max_uses: 1 }, failingKey(503, 1)),
    failed: await issue({ max_uses: 1 }, failingKey(500, 1)),
  };
}

function casesOf(urls: Awaited<ReturnType<typeof issueFor>>): readonly Case[] {
  const one = (name: string, of: keyof typeof urls, retries = true, action = 'plain'): Case => ({
    ...{ name, do: action, url: urls[of].url, retries },
  });
  return [
    one('plain', 'plain'),
    one('stream', 'stream', true, 'stream'),
    one('tools', 'tools', true, 'tools'),
    one('spends its use', 'uses_exhausted'),
    one('uses_exhausted', 'uses_exhausted'),
    one('token_expired', 'token_expired'),
    one('stream refused', 'token_expired', true, 'stream'),
    one('grant_revoked', 'grant_revoked'),
    one('cost_limit_reached', 'cost_limit_reached'),
    one('cost_limit_too_low', 'cost_limit_too_low'),
    // A retry would wait for the minute to end.
    one('spends its rate', 'rate_limited', false),
    one('rate_limited', 'rate_limited', false),
    one('path_not_allowed', 'path_not_allowed'),
    one('retried', 'retried'),
    one('failed', 'failed'),
  ];
}

/** How many calls arrived at the mocks with a provider's key. */
const callsWith = (key: string): number =>
  mocks.seen.filter(({ headers }) => Object.values(headers).some((value) => String(value).endsWith(key)))
    .length;

/** How many uses of a URL count, by `GET` on the URL without its path. */
async function usesOf(url: string): Promise<unknown> {
  const [itself = ''] = /^.*?\/llm\/t\/[^/]+/.exec(url) ?? [];
  const { used } = (await (await fetch(itself)).json()) as { used: number };
  return used;
}

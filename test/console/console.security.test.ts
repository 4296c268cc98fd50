import { hashApiKey } from '@presign/crypto';
import { apiKeys } from '@presign/schema/tables';
import { eq, sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startUpstream } from '../harness/upstream.ts';
import { addAccount, addApiKey, ownAccount } from '../issuer/accounts.ts';
import { type ConsoleStack, cookieOf, FROM_CONSOLE, signInWith, startConsole } from './console-stack.ts';

let stack: ConsoleStack;
let now = 0;

beforeAll(async () => {
  stack = await startConsole({ issuer: { now: () => Date.now() + now } });
});
afterAll(() => stack.close());

const LIMITS = '/v1/limits';

const ask = (
  cookie: string,
  {
    path = LIMITS,
    headers = FROM_CONSOLE,
    ...rest
  }: { path?: string; headers?: Record<string, string> } & RequestInit = {},
) => fetch(`${stack.issuerUrl}${path}`, { ...rest, headers: { cookie, ...headers } });

const status = async (...asked: Parameters<typeof ask>) => (await ask(...asked)).status;

/** The attributes of the cookie that an answer sets, in lower case. */
const attributesOf = (answer: Response) =>
  (answer.headers.get('set-cookie') ?? '')
    .split('; ')
    .slice(1)
    .map((each) => each.toLowerCase());

describe('the cookie of the console', () => {
  test('is not readable by scripts, not sent by other sites, and names no domain', async () => {
    const answer = await signInWith(stack, stack.apiKey);
    expect(answer.status).toBe(204);
    expect(attributesOf(answer).sort()).toEqual(['httponly', 'max-age=43200', 'path=/', 'samesite=strict']);
    expect(answer.headers.get('set-cookie')).not.toContain(stack.apiKey);
  });

  test('is sent only over https if the issuer has https, and to no other host', async () => {
    const secure = await startConsole({ issuer: { issuerUrl: 'https://issuer.example.com' } });
    const port = secure.issuer.port;
    const answer = await signInWith({ issuerUrl: `http://127.0.0.1:${port}` }, secure.apiKey);
    expect(answer.headers.get('set-cookie')).toMatch(/^__Host-presign-console=/);
    expect(attributesOf(answer)).toEqual(expect.arrayContaining(['secure', 'path=/']));
    await secure.close();
  });

  test('is a random value, and only its hash is stored', async () => {
    const cookie = await cookieOf(stack, stack.apiKey);
    const value = cookie.split('=')[1] ?? '';
    expect(Buffer.from(value, 'base64url')).toHaveLength(32);
    const stored = JSON.stringify(await stack.db.execute(sql`select * from console_sessions`));
    expect(stored).toContain(hashApiKey(value));
    expect(stored).not.toContain(value);
    expect(stored).not.toContain(stack.apiKey);
  });

  test('appears in no log line, and the API key appears in none', async () => {
    const cookie = await cookieOf(stack, stack.apiKey);
    expect(await status(cookie)).toBe(200);
    await signInWith(stack, 'presign_sk_wrong');
    const logs = stack.logs.join('\n');
    expect(logs).toContain('/console/session');
    for (const secret of [cookie.split('=')[1] ?? '', stack.apiKey, 'presign_sk_wrong'])
      expect(logs).not.toContain(secret);
  });

  const { 'sec-fetch-site': _site, ...noSite } = FROM_CONSOLE;
  const { 'x-presign-console': _own, ...noHeader } = FROM_CONSOLE;
  test.each([
    ['without the header of the console', noHeader],
    ['from another site', { ...FROM_CONSOLE, 'sec-fetch-site': 'cross-site' }],
    ['from another host of this site', { ...FROM_CONSOLE, 'sec-fetch-site': 'same-site' }],
    [
      'from another site that names the origin of the issuer',
      { ...FROM_CONSOLE, 'sec-fetch-site': 'cross-site', origin: 'ISSUER' },
    ],
    ['that the user typed', { ...FROM_CONSOLE, 'sec-fetch-site': 'none' }],
    ['of an old browser on another origin', { ...noSite, origin: 'https://evil.example.com' }],
    ['of an old browser without an origin', noSite],
    ['of a sandboxed page', { ...noSite, origin: 'null' }],
  ])('is refused in a request %s', async (_case, given) => {
    const cookie = await cookieOf(stack, stack.apiKey);
    const headers = Object.fromEntries(
      Object.entries(given).map(([name, value]) => [name, value === 'ISSUER' ? stack.issuerUrl : value]),
    );
    const type = { 'content-type': 'application/json' };
    expect(await status(cookie, { headers })).toBe(401);
    const body = JSON.stringify({ name: 'stolen', scopes: ['read'] });
    expect(
      await status(cookie, { path: '/v1/api-keys', method: 'POST', headers: { ...headers, ...type }, body }),
    ).toBe(401);
    const stolen = await stack.db.select().from(apiKeys).where(eq(apiKeys.name, 'stolen'));
    expect(stolen).toEqual([]);
    expect((await signInWith(stack, stack.apiKey, headers)).status).toBe(401);
    expect(await status(cookie, { path: '/console/session', method: 'DELETE', headers })).toBe(401);
    expect(await status(cookie)).toBe(200);
  });

  test('is accepted from an old browser that names the origin of the issuer', async () => {
    const cookie = await cookieOf(stack, stack.apiKey);
    expect(await status(cookie, { headers: { ...noSite, origin: stack.issuerUrl } })).toBe(200);
  });

  test('gives a page of another origin no permission', async () => {
    const answer = await fetch(`${stack.issuerUrl}${LIMITS}`, {
      method: 'OPTIONS',
      headers: {
        ...{ origin: 'https://evil.example.com', 'access-control-request-method': 'GET' },
        'access-control-request-headers': 'x-presign-console',
      },
    });
    expect(answer.ok).toBe(false);
    expect([...answer.headers.keys()].filter((name) => name.startsWith('access-control-'))).toEqual([]);
  });

  test('adds no permission to an API key in the same request', async () => {
    const cookie = await cookieOf(stack, stack.apiKey);
    const headers = { ...FROM_CONSOLE, authorization: 'Bearer presign_sk_wrong' };
    expect(await status(cookie, { headers })).toBe(401);
  });

  test('is not accepted by the gateway, and is not sent to a provider', async () => {
    const cookie = await cookieOf(stack, stack.apiKey);
    const gateway = stack.gatewayUrls[0] ?? '';
    expect((await fetch(`${gateway}${LIMITS}`, { headers: { cookie, ...FROM_CONSOLE } })).ok).toBe(false);
    const provider = await startUpstream((_seen, response) => void response.end('{}'));
    const other = await startConsole({ providers: { openai: { base_url: provider.url } } });
    const { url } = await other.issue({
      provider: 'openai',
      path: '/v1/models',
      method: 'GET',
      client_api_key: 'sk-1',
    });
    expect((await fetch(url, { headers: { cookie, ...FROM_CONSOLE } })).status).toBe(200);
    expect(provider.seen[0]?.headers.cookie).toBeUndefined();
    await other.close();
    await provider.close();
  });
});

describe('a session of the console', () => {
  const keyOf = async (scopes: string[]) =>
    addApiKey(stack, await ownAccount(stack), { scopes, name: `key of ${scopes}` });

  test('ends at once when its API key is revoked', async () => {
    const key = await keyOf(['read']);
    const cookie = await cookieOf(stack, key);
    expect(await status(cookie)).toBe(200);
    const [row] = await stack.db
      .select()
      .from(apiKeys)
      .where(eq(apiKeys.hash, hashApiKey(key)));
    const headers = { authorization: `Bearer ${stack.apiKey}` };
    const revoked = await fetch(`${stack.issuerUrl}/v1/api-keys/${row?.id}`, { method: 'DELETE', headers });
    expect(revoked.ok).toBe(true);
    expect(await status(cookie)).toBe(401);
  });

  test('ends when its API key expires', async () => {
    const cookie = await cookieOf(
      stack,
      await addApiKey(stack, await ownAccount(stack), {
        expiresAt: new Date(Date.now() + 60_000),
      }),
    );
    expect(await status(cookie)).toBe(200);
    now = 61_000;
    expect(await status(cookie)).toBe(401);
    now = 0;
  });

  test('ends after 12 hours', async () => {
    const cookie = await cookieOf(stack, stack.apiKey);
    now = 12 * 3_600_000 - 60_000;
    expect(await status(cookie)).toBe(200);
    now = 12 * 3_600_000 + 60_000;
    expect(await status(cookie)).toBe(401);
    now = 0;
  });

  test('ends when its user signs out, and the browser forgets the cookie', async () => {
    const cookie = await cookieOf(stack, stack.apiKey);
    const answer = await ask(cookie, { path: '/console/session', method: 'DELETE' });
    expect(answer.status).toBe(204);
    expect(attributesOf(answer)).toContain('max-age=0');
    expect(await status(cookie)).toBe(401);
  });

  test('is refused while its account is suspended', async () => {
    const { apiKey, id } = await addAccount(stack);
    const cookie = await cookieOf(stack, apiKey);
    const headers = { authorization: `Bearer ${stack.apiKey}` };
    await fetch(`${stack.issuerUrl}/v1/accounts/${id}/suspend`, { method: 'POST', headers });
    expect(await status(cookie)).toBe(403);
    expect((await signInWith(stack, apiKey)).status).toBe(403);
  });

  test('has exactly the permissions of its API key', async () => {
    const cookie = await cookieOf(stack, await keyOf(['read']));
    expect(await status(cookie, { path: '/v1/calls' })).toBe(200);
    expect(await status(cookie, { path: '/v1/api-keys' })).toBe(403);
    const body = JSON.stringify({ provider: 'sandbox', path: '/v1/models', client_api_key: 'sk-sandbox' });
    const headers = { ...FROM_CONSOLE, 'content-type': 'application/json' };
    expect(await status(cookie, { path: '/v1/presign', method: 'POST', headers, body })).toBe(403);
  });

  test('counts toward a maximum of 20 for its API key, beyond which the oldest ends', async () => {
    const key = await keyOf(['read']);
    const first = await cookieOf(stack, key);
    now = 1_000;
    const others: string[] = [];
    for (let at = 0; at < 20; at++) others.push(await cookieOf(stack, key));
    expect(await status(first)).toBe(401);
    for (const cookie of others) expect(await status(cookie)).toBe(200);
    now = 0;
  });

  test.each([
    ['an unknown key', '{"api_key": "presign_sk_unknown"}', 401],
    ['no key', '{}', 400],
    ['a key that is no text', '{"api_key": {"$ne": ""}}', 400],
    ['no JSON', 'api_key=1', 400],
    ['a large body', JSON.stringify({ api_key: 'x'.repeat(4_000) }), 413],
  ])('does not begin with %s', async (_case, body, expected) => {
    const headers = { ...FROM_CONSOLE, 'content-type': 'application/json' };
    const answer = await fetch(`${stack.issuerUrl}/console/session`, { method: 'POST', headers, body });
    expect(answer.status).toBe(expected);
    expect(answer.headers.get('set-cookie')).toBeNull();
  });
});

describe('the pages of the console', () => {
  const page = (path = '', headers: Record<string, string> = {}) =>
    fetch(`${stack.consoleUrl}${path}`, { headers });

  test('run and load only files of the issuer, connect only to it and the gateway, and cannot be framed', async () => {
    const answer = await page();
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-security-policy')).toBe(
      `default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self' ${stack.gatewayUrls[0]} ${stack.gatewayUrls[0]?.replace('http', 'ws')}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'`,
    );
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
    expect(answer.headers.get('cross-origin-opener-policy')).toBe('same-origin');
    expect(answer.headers.get('referrer-policy')).toBe('no-referrer');
    expect(answer.headers.get('cache-control')).toBe('no-store');
    const html = await answer.text();
    expect(html).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\son\w+=|style=|https?:/);
  });

  test('contain no key and no figure, with or without a session', async () => {
    const cookie = await cookieOf(stack, stack.apiKey);
    const [without, having] = await Promise.all([page(), page('', { cookie })]);
    const html = await without.text();
    expect(await having.text()).toBe(html);
    expect(html).not.toContain('presign_sk_');
  });

  test('have file names that change with their content, and are cached forever', async () => {
    const html = await (await page()).text();
    const files = Array.from(html.matchAll(/(?:src|href)="\.\/(assets\/[^"]+)"/g), ([, name = '']) => name);
    expect(files.length).toBeGreaterThan(1);
    for (const file of files) {
      const answer = await page(file);
      expect(answer.status).toBe(200);
      expect(answer.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
      expect(answer.headers.get('content-encoding')).toBe('gzip');
      expect(answer.headers.get('content-type')).toMatch(/^text\/(javascript|css); charset=utf-8$/);
    }
  });

  test.each(['..%2findex.html', '%2e%2e/%2e%2e/package.json', 'assets/../../package.json', 'assets', '.key'])(
    'are the only files that %s can reach',
    async (path) => {
      const answer = await page(path);
      expect(answer.status).toBe(404);
    },
  );

  test('are served without the trailing slash, behind any path prefix', async () => {
    const answer = await fetch(`${stack.issuerUrl}/console`, { redirect: 'manual' });
    expect([answer.status, answer.headers.get('location')]).toEqual([308, 'console/']);
  });

  test('do not exist where the issuer has no console', async () => {
    const none = await startConsole({ issuer: { consoleDir: undefined } });
    expect((await fetch(none.consoleUrl)).status).toBe(404);
    await none.close();
  });
});

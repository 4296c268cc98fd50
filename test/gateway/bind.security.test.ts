import { request } from 'undici';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { type Providers, startProviders } from './providers.ts';

let providers: Providers;
let stack: Stack;
/** Gateways behind proxies: one that trusts no proxy, and one that trusts loopback and 10.0.0.0/8. */
let alone: string;
let behind: string;
beforeAll(async () => {
  providers = await startProviders();
  stack = await startStack({ providers: providers.file });
  [alone = ''] = stack.gatewayUrls;
  behind = await stack.addGateway({ trustedProxies: ['127.0.0.0/8', '::1', '10.0.0.0/8'] });
});
afterAll(async () => {
  await stack.close();
  await providers.close();
});
beforeEach(() => {
  providers.seen.length = 0;
});

const CHAT = { provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk-real' };
const APP = 'https://app.example.com';
const issue = async (bind: object) => (await stack.issue({ ...CHAT, bind })).url;

type Headers = Record<string, string | string[]>;
async function call(url: string, headers: Headers = {}, method: 'POST' | 'GET' | 'OPTIONS' = 'POST') {
  const body = method === 'POST' ? '{"jsonrpc":"2.0","id":1,"method":"ping"}' : null;
  const answer = await request(url, { method, body, headers });
  const text = await answer.body.text();
  return {
    status: answer.statusCode,
    code: answer.headers['x-presign-code'] ?? 'sent',
    allows: answer.headers['access-control-allow-origin'],
    vary: answer.headers.vary,
    text,
  };
}

describe('bind.origins', () => {
  test('a page of a listed origin may call, and its browser lets it read the answer', async () => {
    const url = await issue({ origins: ['http://localhost:3000', APP] });
    const answer = await call(url, { origin: APP });
    expect(answer).toMatchObject({ status: 200, code: 'sent', allows: APP, vary: 'origin' });
    // The provider does not learn it.
    expect(providers.seen[0]?.headers.origin).toBeUndefined();
  });

  test.each<[string, Headers]>([
    ['no origin', {}],
    ['the origin null', { origin: 'null' }],
    ['an empty one', { origin: '' }],
    ['another scheme', { origin: 'http://app.example.com' }],
    ['another port', { origin: `${APP}:8443` }],
    ['the default port', { origin: `${APP}:443` }],
    ['a path', { origin: `${APP}/` }],
    ['another case', { origin: 'https://APP.example.com' }],
    ['a longer host', { origin: `${APP}.evil.example` }],
    ['a subdomain', { origin: 'https://x.app.example.com' }],
    ['a user', { origin: 'https://app.example.com@evil.example' }],
    ['two origins in one header', { origin: `${APP}, https://evil.example` }],
    ['two headers', { origin: [APP, 'https://evil.example'] }],
    ['a Referer alone', { referer: `${APP}/page` }],
    ['the origin in another header', { 'x-forwarded-origin': APP }],
  ])('%s is refused, and nothing says which origins may call', async (_what, headers) => {
    const answer = await call(await issue({ origins: [APP] }), headers);
    expect(answer).toMatchObject({ status: 403, code: 'origin_not_allowed' });
    expect(answer.text).not.toContain('app.example');
    expect(providers.seen).toHaveLength(0);
  });

  test('a preflight allows only a listed origin', async () => {
    const url = await issue({ origins: [APP] });
    const asking = {
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'authorization',
    };
    expect(await call(url, { ...asking, origin: APP }, 'OPTIONS')).toMatchObject({
      status: 204,
      allows: APP,
    });
    const other = await call(url, { ...asking, origin: 'https://evil.example' }, 'OPTIONS');
    expect(other).toMatchObject({ status: 403, code: 'origin_not_allowed', allows: undefined });
    const free = (await stack.issue(CHAT)).url;
    expect(await call(free, { ...asking, origin: 'https://evil.example' }, 'OPTIONS')).toMatchObject({
      status: 204,
      allows: '*',
    });
  });

  test('also protects the status of a URL', async () => {
    const url = await issue({ origins: [APP] });
    const status = url.slice(0, url.indexOf('/v1/'));
    expect(await call(status, {}, 'GET')).toMatchObject({ code: 'origin_not_allowed' });
    expect(await call(status, { origin: APP }, 'GET')).toMatchObject({ status: 200, allows: APP });
  });
});

describe('bind.ip_ranges', () => {
  const at = (url: string) => url.replace(alone, behind);

  test('without a trusted proxy the address of the connection counts, whatever headers say', async () => {
    const [here, there] = [
      await issue({ ip_ranges: ['127.0.0.0/8'] }),
      await issue({ ip_ranges: ['192.0.2.7'] }),
    ];
    for (const name of ['x-forwarded-for', 'forwarded', 'x-real-ip', 'true-client-ip', 'cf-connecting-ip'])
      for (const value of ['192.0.2.7', 'for=192.0.2.7', '127.0.0.1, 192.0.2.7']) {
        expect((await call(here, { [name]: value })).code).toBe('sent');
        expect(await call(there, { [name]: value })).toMatchObject({
          status: 403,
          code: 'address_not_allowed',
        });
      }
  });

  test.each<[string, string | string[], boolean]>([
    ['the client', '192.0.2.7', true],
    ['the client with a port', '192.0.2.7:51234', true],
    ['the client in IPv6 form', '::ffff:192.0.2.7', true],
    ['the client in IPv6 form, in hex', '::FFFF:c000:0207', true],
    ['a client through a second trusted proxy', '192.0.2.7, 10.1.2.3', true],
    ['a forged beginning before the client', '203.0.113.9, 192.0.2.7', true],
    ['a forged client before another one', '192.0.2.7, 203.0.113.9', false],
    ['a forged client before another one and a proxy', '192.0.2.7, 203.0.113.9, 10.1.2.3', false],
    ['a forged client in a first header', ['192.0.2.7', '203.0.113.9'], false],
    ['another client', '192.0.3.7', false],
    ['no address', 'unknown', false],
    ['an address in octal', '0300.0.2.7', false],
    ['an address as one number', '3221225991', false],
    ['a name', 'localhost', false],
    ['an empty header', '', false],
    ['an empty last entry', '192.0.2.7,', false],
    ['a client behind 32 proxies', `192.0.2.7${', 10.1.2.3'.repeat(31)}`, true],
    ['a client behind more proxies', `192.0.2.7${', 10.1.2.3'.repeat(32)}`, false],
    ['thousands of proxies', '10.1.2.3,'.repeat(1_700), false],
  ])('behind a trusted proxy: %s (%j)', async (_what, forwarded, passes) => {
    const url = at(await issue({ ip_ranges: ['192.0.2.0/24'] }));
    expect((await call(url, { 'x-forwarded-for': forwarded })).code).toBe(
      passes ? 'sent' : 'address_not_allowed',
    );
  });

  test('ranges of IPv6 and IPv4 do not match each other', async () => {
    const from = async (ranges: string[], address: string) =>
      (await call(at(await issue({ ip_ranges: ranges })), { 'x-forwarded-for': address })).code;
    expect(await from(['2001:db8::/32'], '2001:db8:1::7')).toBe('sent');
    expect(await from(['2001:db8::/32'], '[2001:DB8::7]:443')).toBe('sent');
    expect(await from(['2001:db8::/32'], '2001:db9::7')).toBe('address_not_allowed');
    expect(await from(['::/0'], '192.0.2.7')).toBe('address_not_allowed');
    expect(await from(['::/0'], '::ffff:192.0.2.7')).toBe('address_not_allowed');
    expect(await from(['0.0.0.0/0'], '::ffff:192.0.2.7')).toBe('sent');
    expect(await from(['0.0.0.0/0'], '2001:db8::7')).toBe('address_not_allowed');
  });

  test('both conditions must be met', async () => {
    const url = await issue({ origins: [APP], ip_ranges: ['127.0.0.1'] });
    expect((await call(url, { origin: APP })).code).toBe('sent');
    expect((await call(url)).code).toBe('origin_not_allowed');
    const elsewhere = await issue({ origins: [APP], ip_ranges: ['192.0.2.7'] });
    expect((await call(elsewhere, { origin: APP })).code).toBe('address_not_allowed');
  });
});

test("a bundle's bindings apply to all its URLs and its document", async () => {
  const servers = [{ name: 'a', url: `${providers.url}/mcp`, transport: 'http' }];
  const { bundle_url: bundle, servers: urls } = await stack.issueMcp({ servers, bind: { origins: [APP] } });
  const url = (urls.a as { url: string }).url;
  for (const [to, method] of [
    [bundle, 'GET'],
    [url, 'POST'],
    [url, 'GET'],
  ] as const) {
    expect(await call(to, {}, method)).toMatchObject({ status: 403, code: 'origin_not_allowed' });
    expect(providers.seen).toHaveLength(0);
  }
  expect(await call(bundle, { origin: APP }, 'GET')).toMatchObject({ status: 200, allows: APP });
});

test('invalid bindings are refused with their position', async () => {
  for (const [bind, param] of [
    [{}, 'bind'],
    [[], 'bind'],
    [{ origins: [] }, 'bind.origins'],
    [{ origins: ['*'] }, 'bind.origins[0]'],
    [{ origins: ['null'] }, 'bind.origins[0]'],
    [{ origins: ['https://app.example.com/'] }, 'bind.origins[0]'],
    [{ origins: ['https://APP.example.com'] }, 'bind.origins[0]'],
    [{ origins: ['https://app.example.com:443'] }, 'bind.origins[0]'],
    [{ ip_ranges: ['192.0.2.7/33'] }, 'bind.ip_ranges[0]'],
    [{ ip_ranges: ['192.0.2.07'] }, 'bind.ip_ranges[0]'],
    [{ ip_ranges: ['::ffff:192.0.2.7'] }, 'bind.ip_ranges[0]'],
    [{ ip_ranges: ['example.com'] }, 'bind.ip_ranges[0]'],
    [{ ips: ['192.0.2.7'] }, 'bind.ips'],
  ] as const) {
    const answer = await stack.presign({ ...CHAT, bind });
    expect({ bind, status: answer.status, ...((await answer.json()) as object) }).toMatchObject({
      status: 400,
      error: { param },
    });
  }
});

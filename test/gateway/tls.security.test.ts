import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type GatewayProcess, startGatewayProcess } from '../harness/gateway-process.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import {
  type ForwardProxy,
  newAuthority,
  newCertificate,
  startCutTls,
  startProxy,
  startTlsUpstream,
  type TlsUpstream,
} from '../harness/tls.ts';

type Kind = 'company' | 'other-name' | 'expired' | 'self-signed' | 'direct';

let upstreams: Record<Kind, TlsUpstream>;
let cut: Awaited<ReturnType<typeof startCutTls>>;
let proxy: ForwardProxy;
let stack: Stack;
/** It trusts the company's authority, as the variable of Node says. */
let trusting: GatewayProcess;
let tunnelling: GatewayProcess;

beforeAll(async () => {
  const authority = await newAuthority();
  const start = async (name: string, by?: typeof authority, isExpired?: boolean) =>
    startTlsUpstream(await newCertificate(name, by, isExpired));
  upstreams = {
    company: await start('localhost', authority),
    direct: await start('localhost', authority),
    'other-name': await start('other.example', authority),
    expired: await start('localhost', authority, true),
    'self-signed': await start('localhost'),
  };
  cut = await startCutTls();
  proxy = await startProxy();
  const urls = Object.entries(upstreams).map(([kind, { url }]) => [kind, url] as const);
  const providers = [...urls, ['cut', cut.url] as const].map(([id, base_url]) => [
    id,
    { extends: 'openai', base_url },
  ]);
  stack = await startStack({ providers: Object.fromEntries(providers) });
  const file = join(mkdtempSync(join(tmpdir(), 'presign-')), 'authority.pem');
  writeFileSync(file, authority.cert);
  trusting = await startGatewayProcess(stack, { NODE_EXTRA_CA_CERTS: file });
  tunnelling = await startGatewayProcess(stack, {
    NODE_EXTRA_CA_CERTS: file,
    HTTPS_PROXY: proxy.url.replace('http://', 'http://gate:way%21@'),
    NO_PROXY: `example.com,${new URL(upstreams.direct.url).host}`,
  });
}, 60_000);
afterAll(async () => {
  await Promise.all([trusting?.stop(), tunnelling?.stop()]);
  await stack.close();
  await Promise.all([cut, proxy, ...Object.values(upstreams)].map((each) => each.close()));
});

const BODY = '{"prompt":"marked-prompt"}';

async function call(url: string, gateway?: GatewayProcess) {
  const target = gateway ? url.replace(stack.gatewayUrls[0] ?? '', gateway.url) : url;
  const headers = { 'content-type': 'application/json' };
  const answered = await request(target, { method: 'POST', headers, body: BODY });
  return { status: answered.statusCode, text: await answered.body.text() };
}

const issue = (provider: string) =>
  stack.issue({ provider, path: '/v1/chat/completions', client_api_key: 'sk-marked', max_uses: 3 });

/** An answer waits for its give-back at most a second, which is short on a busy machine. */
const isGivenBack = (url: string) => eventually(async () => (await used(url)) === 0);

async function used(url: string): Promise<unknown> {
  const described = await request(url.replace('/v1/chat/completions', ''));
  return ((await described.body.json()) as { used: unknown }).used;
}

test('a provider with a certificate of a private authority is reached, by name, on one connection', async () => {
  const { url } = await issue('company');
  for (let i = 0; i < 3; i++) expect(await call(url, trusting)).toMatchObject({ status: 200 });
  expect(upstreams.company.names).toEqual(['localhost']);
  expect(upstreams.company.seen.at(-1)).toMatchObject({ body: BODY });
});

describe('a call is not sent, and its use is returned, if the certificate', () => {
  test.each([
    ['is for another name', 'other-name', true, 'ERR_TLS_CERT_ALTNAME_INVALID'],
    ['has expired', 'expired', true, 'CERT_HAS_EXPIRED'],
    ['is self-signed', 'self-signed', true, 'DEPTH_ZERO_SELF_SIGNED_CERT'],
    [
      'is of an authority that the gateway does not know',
      'company',
      false,
      'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    ],
  ] as const)('%s', async (_what, kind, isTrusting, code) => {
    const { url } = await issue(kind);
    const before = upstreams[kind].seen.length;
    const sent = await call(url, isTrusting ? trusting : undefined);
    expect(sent).toMatchObject({ status: 502, text: expect.stringContaining('upstream_unreachable') });
    expect(upstreams[kind].seen).toHaveLength(before);
    await isGivenBack(url);
    if (!isTrusting) expect(stack.logs.some((line) => line.includes(`"error":"${code}"`))).toBe(true);
  });
});

test('an aborted handshake counts as a call that was never sent', async () => {
  const { url } = await issue('cut');
  expect(await call(url, trusting)).toMatchObject({ status: 502 });
  await isGivenBack(url);
});

describe('a gateway with HTTPS_PROXY', () => {
  test('reaches providers through a tunnel, and the proxy sees only the login and the target', async () => {
    const { url } = await issue('company');
    const before = proxy.tunnels.length;
    for (let i = 0; i < 3; i++) expect(await call(url, tunnelling)).toMatchObject({ status: 200 });
    const login = `Basic ${Buffer.from('gate:way!').toString('base64')}`;
    expect(proxy.tunnels.slice(before)).toEqual([{ to: new URL(upstreams.company.url).host, login }]);
    const { headers, body } = upstreams.company.seen.at(-1) ?? {};
    expect(body).toBe(BODY);
    expect(headers?.join()).toContain('Bearer sk-marked');
    expect(headers?.join().toLowerCase()).not.toContain('proxy-');
  });

  test('forwards each of several headers with one name, as without a proxy', async () => {
    const { url } = await issue('company');
    const given = ['content-type', 'application/json', 'x-tag', 'one', 'x-tag', 'two'];
    const tagsBy = async (gateway: GatewayProcess) => {
      const target = url.replace(stack.gatewayUrls[0] ?? '', gateway.url);
      const sent = await request(target, { method: 'POST', headers: given, body: BODY });
      await sent.body.dump();
      const { headers = [] } = upstreams.company.seen.at(-1) ?? {};
      return headers.filter((_, i) => headers[i - 1]?.toLowerCase() === 'x-tag');
    };
    expect(await tagsBy(trusting)).toEqual(['one', 'two']);
    expect(await tagsBy(tunnelling)).toEqual(['one', 'two']);
  });

  test('still checks the certificate of the provider', async () => {
    for (const kind of ['other-name', 'expired', 'self-signed'] as const) {
      const { url } = await issue(kind);
      expect(await call(url, tunnelling)).toMatchObject({ status: 502 });
      await isGivenBack(url);
      expect(upstreams[kind].seen).toHaveLength(0);
    }
  });

  test('reaches hosts in NO_PROXY directly', async () => {
    const { url } = await issue('direct');
    const before = proxy.tunnels.length;
    expect(await call(url, tunnelling)).toMatchObject({ status: 200 });
    expect(proxy.tunnels).toHaveLength(before);
  });

  test('answers 502 if the proxy cannot reach the provider', async () => {
    const { url } = await issue('cut');
    expect(await call(url, tunnelling)).toMatchObject({ status: 502 });
    await isGivenBack(url);
  });
});

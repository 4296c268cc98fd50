import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type GatewayProcess, startGatewayProcess } from '../harness/gateway-process.ts';
import { removeFolder } from '../harness/remove-folder.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { type ForwardProxy, newAuthority, newCertificate, startProxy } from '../harness/tls.ts';
import { codeOf, openSocket, type RefusedHandshake, statusOf } from './holder.ts';
import { type ResponsesProvider, startResponsesProvider } from './responses-provider.ts';

let providers: Record<'company' | 'other-name' | 'plain', ResponsesProvider>;
let proxy: ForwardProxy;
let stack: Stack;
let folder: string;
/** It trusts the company's authority. */
let trusting: GatewayProcess;
let tunnelling: GatewayProcess;
/** It calls only public addresses. */
let guarded: string;

beforeAll(async () => {
  const authority = await newAuthority();
  providers = {
    company: await startResponsesProvider(await newCertificate('localhost', authority)),
    'other-name': await startResponsesProvider(await newCertificate('other.example', authority)),
    plain: await startResponsesProvider(),
  };
  proxy = await startProxy();
  const file = Object.entries(providers).map(([id, { url }]) => [id, { extends: 'openai', base_url: url }]);
  stack = await startStack({ providers: Object.fromEntries(file) });
  folder = mkdtempSync(join(tmpdir(), 'presign-'));
  writeFileSync(join(folder, 'authority.pem'), authority.cert);
  const env = { NODE_EXTRA_CA_CERTS: join(folder, 'authority.pem') };
  trusting = await startGatewayProcess(stack, env);
  tunnelling = await startGatewayProcess(stack, {
    ...env,
    HTTPS_PROXY: proxy.url.replace('http://', 'http://gate:way%21@'),
  });
  guarded = await stack.addGateway({ allowPrivateUpstreams: false });
});
afterAll(async () => {
  await Promise.all([trusting?.stop(), tunnelling?.stop()]);
  await stack.close();
  await Promise.all([proxy, ...Object.values(providers)].map((each) => each.close()));
  await removeFolder(folder);
});

const UNREACHABLE = { status: 502, body: expect.stringContaining('upstream_unreachable') };

const urlAt = async (provider: keyof typeof providers, gateway: string) => {
  const ask = { provider, path: '/v1/responses', client_api_key: 'sk-marked', sockets: true };
  const { url } = await stack.issue({ ...ask, max_uses: 3 });
  return url.replace(stack.gatewayUrls[0] ?? '', gateway);
};
const refusalOf = (url: string) =>
  openSocket(url).then(
    () => undefined,
    (error: RefusedHandshake) => error,
  );

test('a socket reaches a provider with a certificate of a private authority', async () => {
  const holder = await openSocket(await urlAt('company', trusting.url));
  expect(codeOf(await holder.turn())).toBe('response.completed');
  expect(providers.company.sockets.at(-1)?.request.headers.authorization).toBe('Bearer sk-marked');
  holder.socket.close();
});

test('an invalid certificate refuses the handshake, and no key is sent', async () => {
  for (const [provider, gateway] of [
    ['other-name', trusting.url],
    ['other-name', tunnelling.url],
    ['company', stack.gatewayUrls[0] ?? ''],
  ] as const) {
    const before = providers[provider].sockets.length;
    const url = await urlAt(provider, gateway);
    expect(await refusalOf(url)).toMatchObject(UNREACHABLE);
    expect(providers[provider].sockets).toHaveLength(before);
    expect((await statusOf(url)).used).toBe(0);
  }
});

test('with HTTPS_PROXY a socket uses a tunnel, and the proxy sees only the login and the target', async () => {
  const holder = await openSocket(await urlAt('company', tunnelling.url));
  for (let i = 0; i < 2; i++) expect(codeOf(await holder.turn())).toBe('response.completed');
  const login = `Basic ${Buffer.from('gate:way!').toString('base64')}`;
  const to = new URL(providers.company.url).host;
  expect(proxy.tunnels.at(-1)).toEqual({ to, login });
  const { rawHeaders = [], headers } = providers.company.sockets.at(-1)?.request ?? {};
  expect(headers?.authorization).toBe('Bearer sk-marked');
  expect(rawHeaders.join().toLowerCase()).not.toContain('proxy-');
  holder.socket.close();
});

test('a proxy that cannot reach the provider refuses the handshake', async () => {
  const url = await urlAt('company', tunnelling.url);
  const { port } = new URL(providers.company.url);
  await providers.company.close();
  expect(await refusalOf(url)).toMatchObject(UNREACHABLE);
  expect(proxy.tunnels.at(-1)?.to).toBe(`localhost:${port}`);
});

test('a gateway without private addresses opens no socket to one', async () => {
  const url = await urlAt('plain', guarded);
  const refused = await refusalOf(url);
  expect(refused).toMatchObject({ status: 502, code: 'upstream_unreachable' });
  expect(refused?.body).toContain('not public');
  expect(providers.plain.sockets).toHaveLength(0);
  // The same URL works at a gateway that may.
  const holder = await openSocket(url.replace(guarded, stack.gatewayUrls[0] ?? ''));
  expect(codeOf(await holder.turn())).toBe('response.completed');
  holder.socket.close();
});

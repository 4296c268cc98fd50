import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { balancers, type ComposeProxy, startProxy } from '../e2e/balancer.ts';
import { eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';
import { startGatewayProcess } from '../harness/gateway-process.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';

const isInstalled = balancers.some(([name, program]) => name === 'haproxy' && program);

const POST = { method: 'POST', body: '{"model":"m"}' } as const;
/** The address of a URL's holder, one that the URL is bound to and no client here has, and that of another client. */
const [HOLDER, STATED, OTHER] = ['127.0.0.9', '192.0.2.7', '127.0.0.8'] as const;

describe.skipIf(!isInstalled)('the proxy of compose.yaml', () => {
  let upstream: Upstream;
  let stack: Stack;
  let url: string;
  beforeAll(async () => {
    upstream = await startUpstream((_seen, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}');
    });
    stack = await startStack({ providers: { openai: { base_url: upstream.url } } });
    const ask = { provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk-real' };
    ({ url } = await stack.issue(ask));
    // From now on the grant is in Redis: the embedded Postgres is out of reach of other processes.
    await (await post(url)).body.dump();
  });
  afterAll(async () => {
    await stack.close();
    await upstream.close();
  });

  const post = (to: string) => request(to, POST);
  const through = async ({ url: proxy }: ComposeProxy) => {
    const { statusCode, body } = await post(url.replace(stack.gatewayUrls[0] ?? '', proxy));
    return { status: statusCode, text: await body.text() };
  };

  test('finds a gateway at the new address of its container', async () => {
    const names = await startNames();
    const port = String(await freePort());
    const start = (HOST: string) => startGatewayProcess(stack, { HOST, GATEWAY_PORT: port });
    const first = await start('127.0.0.2');
    names.set('gateway-1.test', '127.0.0.2');
    const proxy = await startProxy([`gateway-1.test:${port}`, `gateway-2.test:${port}`], names.address);
    await eventually(async () => (await proxy.uses())[0]);
    expect(await through(proxy)).toMatchObject({ status: 200 });
    await first.kill();
    const second = await start('127.0.0.3');
    names.set('gateway-1.test', '127.0.0.3');
    await eventually(async () => (await through(proxy)).status === 200);
    await proxy.close();
    await second.kill();
    names.close();
  });

  test("sends to a gateway even if none is ready, so that the caller gets the gateway's answer", async () => {
    const serving = { SHUTDOWN_DRAIN_SECONDS: '300', SHUTDOWN_GRACE_SECONDS: '301' };
    const gateways = [await startGatewayProcess(stack, serving), await startGatewayProcess(stack, serving)];
    const proxy = await startProxy(gateways.map((each) => new URL(each.url).host));
    for (const { child } of gateways) child.kill('SIGTERM');
    await eventually(async () => !(await proxy.uses()).some(Boolean));
    expect(await through(proxy)).toMatchObject({ status: 200 });
    await proxy.close();
    await Promise.all(gateways.map((each) => each.kill()));
  });

  test('keeps a busy gateway that answers a probe after a second', async () => {
    let answered = 0;
    const busy = createServer((_request, response) => {
      setTimeout(() => {
        answered++;
        response.end('{}');
      }, 1_000);
    });
    await new Promise<void>((resolve) => busy.listen(0, '127.0.0.1', resolve));
    const gateway = await startGatewayProcess(stack);
    const hosts = [`127.0.0.1:${(busy.address() as AddressInfo).port}`, new URL(gateway.url).host];
    const proxy = await startProxy(hosts);
    await eventually(async () => answered >= 4);
    expect(await proxy.uses()).toEqual([true, true]);
    expect(proxy.printed()).not.toContain('DOWN');
    await proxy.close();
    await gateway.kill();
    busy.close();
  });

  test("states the address of the client, whatever the client's headers say", async () => {
    const bound = { provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk-real' };
    const { url: own } = await stack.issue({ ...bound, bind: { ip_ranges: [HOLDER, STATED] } });
    const from = async (to: string, localAddress: string, headers = {}) => {
      const dispatcher = new Agent({ localAddress });
      const { statusCode, body } = await request(to, { ...POST, headers, dispatcher });
      await body.dump();
      await dispatcher.close();
      return statusCode;
    };
    expect(await from(own, HOLDER)).toBe(200);
    const gateway = await startGatewayProcess(stack, { TRUSTED_PROXIES: '127.0.0.1' });
    const host = new URL(gateway.url).host;
    const proxy = await startProxy([host, host]);
    await eventually(async () => (await proxy.uses()).every(Boolean));
    const there = own.replace(stack.gatewayUrls[0] ?? '', proxy.url);
    const stated = { 'x-forwarded-for': STATED };
    expect(await from(there, HOLDER)).toBe(200);
    expect(await from(there, HOLDER, stated)).toBe(200);
    expect(await from(there, OTHER)).toBe(403);
    expect(await from(there, OTHER, stated)).toBe(403);
    await proxy.close();
    await gateway.kill();
  });

  test('prints which gateways it uses, and no URL', async () => {
    const gateways = [await startGatewayProcess(stack), await startGatewayProcess(stack)];
    const proxy = await startProxy(gateways.map((each) => new URL(each.url).host));
    await eventually(async () => (await proxy.uses()).every(Boolean));
    expect((await through(proxy)).status).toBe(200);
    await gateways[0]?.kill();
    await eventually(async () => proxy.printed().includes('gateways/gateway-1 is DOWN'));
    expect((await through(proxy)).status).toBe(200);
    await proxy.close();
    expect(proxy.printed()).not.toContain('/llm/');
    await gateways[1]?.kill();
  });
});

/** A name server that knows the IPv4 addresses it is given (RFC 1035 §4.1), and no other name. */
async function startNames() {
  const known = new Map<string, string>();
  const socket = createSocket('udp4').bind(0, '127.0.0.1');
  await once(socket, 'listening');
  socket.on('message', (query, { port, address }) => {
    const labels: string[] = [];
    let at = 12;
    for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
      labels.push(query.toString('latin1', at + 1, at + 1 + length));
      at += 1 + length;
    }
    const type = query.readUInt16BE(at + 1);
    const ip = known.get(labels.join('.').toLowerCase());
    const isAnswer = ip !== undefined && type === 1;
    const header = Buffer.from(query.subarray(0, 12));
    header.writeUInt16BE(ip === undefined ? 0x8183 : 0x8180, 2);
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(isAnswer ? 1 : 0, 6);
    header.writeUInt32BE(0, 8);
    const answer = isAnswer ? [Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, ...octets(ip)])] : [];
    socket.send(Buffer.concat([header, query.subarray(12, at + 5), ...answer]), port, address);
  });
  return {
    address: `127.0.0.1:${socket.address().port}`,
    set: (name: string, ip: string) => void known.set(name, ip),
    close: () => socket.close(),
  };
}

const octets = (ip: string) => ip.split('.').map(Number);

import { readdirSync, readFileSync, statSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';
import { balancers, installed, nginxConf, runBalancer, startProxy } from './balancer.ts';

/** A part of every URL below, as a token is. */
const TOKEN = 'v4.public.SecretOfTheHolder';
const KIB = 1024;

/** How a gateway answers a call, by the last part of its path. It is up as far as probes are concerned. */
const FAULTS: { readonly [fault: string]: (socket: Socket) => unknown } = {
  closes: (socket) => socket.end(),
  resets: (socket) => socket.resetAndDestroy(),
  'breaks off': (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx'),
  'resets an answer': (socket) =>
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx', () => socket.resetAndDestroy()),
  'has a header that is too large': (socket) =>
    socket.end(`HTTP/1.1 200 OK\r\nX-A: ${'a'.repeat(64 * KIB)}\r\n\r\n`),
  'has a header that is invalid': (socket) => socket.end('HTTP/1.1 200 OK\r\nno header\r\n\r\n'),
  'is no HTTP': (socket) => socket.end('hello\r\n\r\n'),
  answers: (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'),
  // Until it is restarted.
  waits: (socket) => waiting.push(socket),
};
const slug = (fault: string) => fault.replaceAll(' ', '-');

let port: number;
/** Nothing listens there. */
let gone: number;
const waiting: Socket[] = [];
const gateway = createServer((socket) => {
  socket.on('error', () => {});
  socket.on('data', (data: Buffer) => {
    const [, path = ''] = /^[A-Z]+ (\S+) HTTP/.exec(data.toString('latin1')) ?? [];
    const fault = Object.keys(FAULTS).find((each) => path.split('?')[0]?.endsWith(`/${slug(each)}`));
    if (fault || /^\/(healthz|readyz)/.test(path)) FAULTS[fault ?? 'answers']?.(socket);
  });
});
beforeAll(async () => {
  await new Promise<void>((resolve) => gateway.listen(0, '127.0.0.1', resolve));
  port = (gateway.address() as AddressInfo).port;
  gone = await freePort();
});
afterAll(() => {
  gateway.close();
});

/** Sends bytes to a proxy, and waits until it has closed, or waits for more. `leaves`: the client closes first. */
async function send(proxy: string, bytes: string, leaves = false): Promise<void> {
  const { hostname, port: at } = new URL(proxy);
  const socket = connect(Number(at), hostname);
  socket.on('error', () => {});
  socket.resume();
  socket.setTimeout(2_000, () => socket.destroy());
  socket.write(bytes);
  if (leaves) {
    await new Promise((resolve) => setTimeout(resolve, 200));
    socket.resetAndDestroy();
  } else {
    await new Promise((resolve) => socket.once('close', resolve));
  }
}

const call = (path: string, headers = '', body = '{}', length = body.length) =>
  `POST ${path} HTTP/1.1\r\nHost: g\r\nConnection: close\r\n${headers}Content-Length: ${length}\r\n\r\n${body}`;

/** Makes every kind of call that a proxy cannot serve, with tokens in the path, in the query and in `Referer`. */
async function provoke(proxy: string): Promise<void> {
  const llm = (fault: string) => `/llm/t/${TOKEN}/${slug(fault)}`;
  const referer = `Referer: https://g.example/llm/t/${TOKEN}/x\r\n`;
  for (const fault of Object.keys(FAULTS).filter((each) => each !== 'waits')) {
    await send(proxy, call(llm(fault)));
    await send(proxy, call(`/mcp/${slug(fault)}?token=${TOKEN}`, referer));
  }
  await send(proxy, call(llm('answers'), '', '{}', 64 * KIB * KIB));
  await send(proxy, call(llm('answers'), 'Transfer-Encoding: chunked\r\n'));
  await send(proxy, call(llm('answers'), `X-A: ${'a'.repeat(80 * KIB)}\r\n`));
  await send(proxy, call(llm('answers'), 'no header\r\n'));
  await send(proxy, call(`${llm('answers')}/${'a'.repeat(80 * KIB)}`));
  await send(proxy, call(`${llm('answers')}/%zz`));
  await send(proxy, call(llm('answers')).replace('HTTP/1.1', 'HTTP/9'));
  await send(proxy, call(llm('waits'), '', '{', 9), true);
  await send(proxy, call(llm('waits'), referer), true);
  await exhaust(proxy, call(llm('waits'), referer));
}

/** Makes more calls than a proxy has connections, and resets those that have reached a gateway, again and again. */
async function exhaust(proxy: string, bytes: string): Promise<void> {
  let isOver = false;
  const calls = (async () => {
    const sent: Promise<void>[] = [];
    for (let i = 0; i < 40; i++) {
      sent.push(send(proxy, bytes));
      // One by one, so that a call can take the last connection and miss one to a gateway.
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await Promise.all(sent);
    isOver = true;
  })();
  while (!isOver) {
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    for (const socket of waiting.splice(0)) socket.resetAndDestroy();
  }
  await calls;
}

const nginx = installed('nginx');

/** Runs nginx with the settings of the guide, changed by `change`, and returns all that it has written. */
async function logsOfNginx(
  change: (conf: string) => string,
  gateways: readonly number[],
  connections = 32,
): Promise<string> {
  const at = await freePort();
  const url = `http://127.0.0.1:${at}`;
  const few = (conf: string) => conf.replace('worker_connections 1024', `worker_connections ${connections}`);
  const conf = (dir: string) => change(few(nginxConf(dir, at, gateways.map(String))));
  // It is up as soon as it answers anything.
  const isUp = gateways.includes(port);
  const running = await runBalancer('nginx', nginx, conf, isUp ? `${url}/healthz` : undefined);
  if (!isUp)
    await eventually(() =>
      fetch(url).then(
        () => true,
        () => undefined,
      ),
    );
  await provoke(url);
  await running.close();
  const files = readdirSync(running.dir).map((name) => join(running.dir, name));
  return files
    .filter((file) => statSync(file).isFile() && !file.endsWith('.conf'))
    .map((file) => readFileSync(file, 'latin1'))
    .join('\n');
}

describe.skipIf(!nginx)('nginx with the settings of the guide', () => {
  const refusing = () => [gone, gone];
  const failing = () => [port, port];

  test.each([
    ['are gone', refusing],
    ['fail in every way', failing],
  ])('writes no URL into a log while gateways %s', async (_how, gateways) => {
    const written = await logsOfNginx((conf) => conf, gateways());
    expect(written).toContain(' 502 ');
    expect(written).toContain('worker process');
    expect(written).not.toContain(TOKEN);
    expect(written).not.toContain('/llm/');
    expect(written).not.toContain('/mcp/');
  });

  // The line for errors is needed, and no level would do.
  test.each(['error', 'alert'])('would write URLs at the level %s', async (level) => {
    const line = /error_log \/dev\/null emerg;/;
    const change = (conf: string) => {
      expect(conf).toMatch(line);
      return conf.replace(line, '').replace('error.log notice', `error.log ${level}`);
    };
    // A call has two connections. With an even or an odd number of them, one call gets only the first.
    const written = [await logsOfNginx(change, failing(), 32), await logsOfNginx(change, failing(), 33)];
    expect(written.join('\n')).toContain(TOKEN);
  });
});

const haproxy = balancers.find(([name]) => name === 'haproxy')?.[1];

describe.skipIf(!haproxy)('haproxy with infra/haproxy.cfg', () => {
  test('prints no URL while gateways fail in every way', async () => {
    const proxy = await startProxy([`127.0.0.1:${port}`, `127.0.0.1:${gone}`]);
    await provoke(proxy.url);
    await proxy.close();
    expect(proxy.printed()).not.toContain(TOKEN);
    expect(proxy.printed()).not.toContain('/llm/');
  });
});

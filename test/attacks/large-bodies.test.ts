import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { openSocket } from '../harness/raw-http.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';

const MIB = 1024 * 1024;
const usage = { prompt_tokens: 20, completion_tokens: 30, total_tokens: 50 };
const ANSWER = JSON.stringify({ choices: [{ index: 0, message: {}, finish_reason: 'stop' }], usage });

let upstream: Upstream;
let stack: Stack;
beforeAll(async () => {
  upstream = await startUpstream(
    (_seen, response) => void response.writeHead(200, { 'content-type': 'application/json' }).end(ANSWER),
  );
  const pricing = { priced: { input: 150_000, output: 600_000 } };
  stack = await startStack({ providers: { openai: { base_url: upstream.url, pricing } } });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});
beforeEach(() => {
  upstream.seen.length = 0;
});

async function issue(more: object = {}) {
  const ask = {
    provider: 'openai',
    path: '/v1/chat/completions',
    client_api_key: 'sk',
    cost_limit: 10_000_000,
  };
  return stack.issue({ ...ask, ...more });
}
const chat = (content: string, more: object = {}) =>
  JSON.stringify({ model: 'priced', max_tokens: 100, messages: [{ role: 'user', content }], ...more });
const small = chat('Hi');

async function send(url: string, body: string) {
  const answer = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  const { error } = (await answer.json()) as { error?: { code: string } };
  return error?.code ?? answer.status;
}

describe('the body of a dead URL is refused without being read', () => {
  async function revoked() {
    const { url, session_id } = await issue();
    await send(url, small);
    const headers = { authorization: `Bearer ${stack.apiKey}` };
    await fetch(`${stack.issuerUrl}/v1/sessions/${session_id}`, { method: 'DELETE', headers });
    return url;
  }
  async function opened(limits: object) {
    const { url } = await issue(limits);
    await send(url, small);
    return url;
  }

  test.each<[string, () => Promise<string>, string]>([
    ['revoked', revoked, 'grant_revoked'],
    ['without a use left', () => opened({ max_uses: 1 }), 'uses_exhausted'],
    ['with nothing left to spend', () => opened({ cost_limit: 0 }), 'cost_limit_reached'],
  ])('%s', async (_what, urlOf, code) => {
    const url = new URL(await urlOf());
    for (const framing of [`Content-Length: ${10 * MIB}`, 'Transfer-Encoding: chunked']) {
      const socket = await openSocket(url.origin);
      const answered = new Promise<string>((resolve) =>
        socket.once('data', (bytes) => resolve(String(bytes))),
      );
      // Nothing of the body is ever sent: only a gateway that does not wait for it can answer.
      socket.write(`POST ${url.pathname} HTTP/1.1\r\nHost: g\r\n${framing}\r\n\r\n`);
      expect(await answered).toContain(`"${code}"`);
      socket.destroy();
    }
  });
});

test('calls of another URL are answered while a body of 100,000 messages is planned', async () => {
  const { url: attacker } = await issue();
  const { url: bystander } = await issue();
  // The workers have started, so that only the planning counts.
  expect(await send(attacker, chat('x'.repeat(2_200_000)))).toBe(200);
  let isPlanned = false;
  const messages = Array.from({ length: 100_000 }, () => ({ role: 'user', content: '' }));
  const planning = send(attacker, chat('', { messages })).finally(() => {
    isPlanned = true;
  });
  let answered = 0;
  while (!isPlanned) {
    expect(await send(bystander, small)).toBe(200);
    answered++;
  }
  expect(await planning).not.toBe(500);
  expect(answered).toBeGreaterThan(5);
});

test('a URL that sends endlessly is refused for a while, and another URL is not', async () => {
  // The clock stands still, so that a slow machine does not get more of the quota than a fast one.
  const now = Date.now();
  const gateway = await stack.addGateway({ now: () => now });
  const at = async () => gateway + new URL((await issue()).url).pathname;
  const [attacker, bystander] = [await at(), await at()];
  const body = `{"model":${' '.repeat(15 * MIB)}1}`;
  const codes: unknown[] = [];
  while (codes.at(-1) !== 'rate_limited' && codes.length < 10) codes.push(await send(attacker, body));
  expect(codes.at(-1)).toBe('rate_limited');
  // Even a small body is refused, because it would have to be read, too.
  expect(await send(attacker, small)).toBe('rate_limited');
  expect(await send(bystander, small)).toBe(200);
});

test('one URL cannot use all memory for bodies', async () => {
  const { url: attacker } = await issue();
  const { url: bystander } = await issue();
  const { origin, pathname } = new URL(attacker);
  const sockets = await Promise.all(Array.from({ length: 12 }, () => openSocket(origin)));
  const refusals = sockets.map(
    (socket) => new Promise<string>((resolve) => socket.once('data', (bytes) => resolve(String(bytes)))),
  );
  const head = `POST ${pathname} HTTP/1.1\r\nHost: g\r\nContent-Length: ${16 * MIB}\r\n\r\n`;
  for (const socket of sockets) socket.write(head + ' '.repeat(15 * MIB));
  expect(await Promise.race(refusals)).toContain('"overloaded"');
  expect(await send(bystander, chat('x'.repeat(10 * MIB)))).not.toBe('overloaded');
  for (const socket of sockets) socket.destroy();
});

test.each<[string, string, (url: URL) => string]>([
  ['an unknown address', 'POST', () => '/unknown'],
  ['a probe', 'GET', () => '/healthz'],
  ['a bundle', 'POST', () => '/mcp/bundle/x'],
  ['the URL itself', 'GET', ({ pathname }) => pathname.split('/').slice(0, 4).join('/')],
  ['a malformed token', 'POST', () => '/llm/t/x/v1/chat/completions'],
])('a body of tiny chunks to %s is read in turns with the calls of others', async (_what, method, pathOf) => {
  const url = new URL((await issue()).url);
  const socket = await openSocket(url.origin);
  socket.on('data', () => {}).on('error', () => {});
  socket.write(`${method} ${pathOf(url)} HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: chunked\r\n\r\n`);
  const chunks = Buffer.from('1\r\nx\r\n'.repeat(10_000));
  const fill = () => {
    while (!socket.destroyed && socket.write(chunks));
    socket.once('drain', fill);
  };
  fill();
  // The first calls fill the buffers of the connection.
  for (let i = 0; i < 5; i++) expect(await send(url.href, small)).toBe(200);
  const before = socket.bytesWritten;
  for (let i = 0; i < 10; i++) expect(await send(url.href, small)).toBe(200);
  // Without turns it is more than half a MiB for each call.
  expect((socket.bytesWritten - before) / 10).toBeLessThan(MIB / 4);
  socket.destroy();
});

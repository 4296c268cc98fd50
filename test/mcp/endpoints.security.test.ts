import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { ask, post, tokenIn, urlOf } from './holder.ts';
import { listen, openSession } from './listen.ts';
import { type McpUpstream, startMcpUpstream } from './upstream.ts';

let upstream: McpUpstream;
let stack: Stack;

beforeAll(async () => {
  stack = await startStack({ providers: {}, gateways: 2 });
});
afterAll(() => stack.close());
beforeEach(async () => {
  upstream = await startMcpUpstream();
  return () => upstream.close();
});

const issue = () => stack.issueMcp({ servers: [{ name: 'a', url: upstream.sseUrl }] });

test('an endpoint with any single bit flipped is refused, and reaches no server', async () => {
  const { endpoint } = await openSession(stack, urlOf(await issue(), 'a'));
  const sealed = new URL(endpoint).searchParams.get('ep') ?? '';
  expect((await post(endpoint, ask('ping'))).status).toBe(202);
  const before = upstream.arrived.length;
  const changed: string[] = [];
  for (let i = 0; i < sealed.length; i++) {
    for (let bit = 0; bit < 8; bit++) {
      const flipped = String.fromCharCode(sealed.charCodeAt(i) ^ (1 << bit));
      changed.push(sealed.slice(0, i) + flipped + sealed.slice(i + 1));
    }
  }
  const [id = '', body = ''] = sealed.split('.');
  const bytes = Buffer.from(body, 'base64url');
  for (let i = 0; i < bytes.length * 8; i++) {
    const copy = Buffer.from(bytes);
    copy.writeUInt8(copy.readUInt8(i >> 3) ^ (1 << (i & 7)), i >> 3);
    changed.push(`${id}.${copy.toString('base64url')}`);
  }
  expect(changed.length).toBeGreaterThan(1_500);
  const statuses = new Map<number, number>();
  for (let i = 0; i < changed.length; i += 50) {
    const some = changed.slice(i, i + 50).map(async (each) => {
      const { status } = await post(withEndpoint(endpoint, each), ask('ping'));
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    });
    await Promise.all(some);
  }
  expect([...statuses]).toEqual([[404, changed.length]]);
  for (const each of ['', 'x', `${sealed}A`, sealed.slice(0, -1), `${sealed}&ep=${sealed}`]) {
    expect((await post(withEndpoint(endpoint, each, false), ask('ping'))).status).toBeGreaterThanOrEqual(403);
  }
  expect(upstream.arrived).toHaveLength(before);
});

const withEndpoint = (url: string, sealed: string, encode = true) =>
  url.replace(/ep=.*/, () => `ep=${encode ? encodeURIComponent(sealed) : sealed}`);

test('an endpoint of another grant is refused, even for the same server and bundle', async () => {
  const servers = ['a', 'b'].map((name) => ({ name, url: upstream.sseUrl }));
  const answer = await stack.issueMcp({ servers });
  const other = await stack.issueMcp({ servers });
  const [own, ...others] = await Promise.all(
    [urlOf(answer, 'a'), urlOf(answer, 'b'), urlOf(other, 'a')].map((url) => openSession(stack, url)),
  );
  const before = upstream.arrived.length;
  for (const { endpoint } of others) {
    const taken = new URL(endpoint).searchParams.get('ep') ?? '';
    const heard = await post(withEndpoint(own?.endpoint ?? '', taken), ask('ping'));
    expect([heard.status, heard.headers['content-type']]).toEqual([404, 'application/json']);
  }
  const [mine, theirs] = [own?.endpoint ?? '', others[0]?.endpoint ?? ''];
  expect((await post(mine.replace(tokenIn(mine), tokenIn(theirs)), ask('ping'))).status).toBe(404);
  expect(upstream.arrived).toHaveLength(before);
});

test.each([
  ['another port', 'http://127.0.0.1:1/messages'],
  ['another scheme', 'https://127.0.0.1/messages'],
  ['another host', '//evil.example/messages'],
  ['a user before another host', 'http://127.0.0.1@evil.example/messages'],
  ['no URL', 'http://'],
  ['data', 'data:text/plain,x'],
])('an endpoint at %s is not accepted: the stream ends without one', async (_what, endpoint) => {
  upstream.endpoint = endpoint;
  const stream = await listen(urlOf(await issue(), 'a'));
  expect(await stream.over).toBe('ended');
  expect(stream.text()).not.toContain('endpoint');
});

test.each([
  ['in full', () => `${upstream.origin}/messages?session=1`],
  ['as a path from here', () => 'messages?session=1'],
  ['with credentials of the query', () => '/messages?session=1&key=theirs'],
])('an endpoint of the server itself may be %s', async (_what, endpoint) => {
  upstream.endpoint = endpoint();
  const { stream, endpoint: given } = await openSession(stack, urlOf(await issue(), 'a'));
  expect(given).not.toContain('theirs');
  expect((await post(given, ask('ping'))).status).toBe(202);
  expect(await stream.reached(1)).toHaveLength(1);
});

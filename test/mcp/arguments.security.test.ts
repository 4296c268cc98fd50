import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { readPublicKeys, readSigningKey, signToken, verifyToken } from '@presign/crypto';
import { mcpClaims } from '@presign/schema';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { type Everything, startEverything } from './everything.ts';
import { at, outcomes, post, sumOf, tokenIn, toolCall, urlOf } from './holder.ts';
import { openSession } from './listen.ts';
import { type McpUpstream, startMcpUpstream } from './upstream.ts';

let upstream: McpUpstream;
let stack: Stack;
beforeAll(async () => {
  upstream = await startMcpUpstream();
  stack = await startStack({ providers: {}, gateways: 2 });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});
let before = 0;
beforeEach(() => {
  before = upstream.ran.length;
});
const ran = () => upstream.ran.slice(before);

const CONDITIONS = {
  read: { path: { prefix: 'docs/é' } },
  set: { to: { equals: 5 }, note: { equals: null } },
  switch: { on: { equals: true } },
  say: { text: { equals: 'ü"\n' } },
};
const issue = (server: object = {}, policy: object = {}) =>
  stack.issueMcp({
    servers: [{ name: 'a', url: upstream.url, transport: 'http', arguments: CONDITIONS, ...server }],
    ...policy,
  });

/** A call with this text as its arguments. */
const callText = (tool: string, args: string) =>
  `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"${tool}","arguments":${args}}}`;

test.each([
  ['read', '{"path":"docs/é"}'],
  ['read', '{"path":"docs/\\u00e9/a","other":[1,{"path":"x"}]}'],
  ['read', '{"p\\u0061th":"docs/é/../../etc"}'],
  ['set', '{"to":5,"note":null,"more":1}'],
  ['set', '{"to":5.0e0,"note":null}'],
  ['switch', '{"on":true}'],
  ['say', '{"text":"\\u00fc\\"\\n"}'],
  // Tools without conditions take any arguments.
  ['free', '{"path":"etc","Path":"etc"}'],
  ['constructor', '{}'],
])('%s runs with %s', async (tool, args) => {
  const heard = await post(urlOf(await issue(), 'a'), callText(tool, args));
  expect(outcomes(heard)).toEqual(['ran']);
  expect(ran()).toEqual([tool]);
});

test('another spelling of a tool with conditions does not run, even if a price list names it', async () => {
  const url = urlOf(await issue({ pricing: { tools: { Read: 5, free: 5 } } }), 'a');
  const heard = await post(url, callText('Read', '{"path":"etc"}'));
  expect(outcomes(heard)).toEqual(['invalid_request']);
  expect(heard.messages[0]?.error?.message).toContain('params.name: Read is not read.');
  expect(outcomes(await post(url, callText('free', '{"path":"etc"}')))).toEqual(['ran']);
  expect(ran()).toEqual(['free']);
});

test.each([
  ['read', 'path', '{}'],
  ['read', 'path', 'null'],
  ['read', 'path', '["path"]'],
  ['read', 'path', '"docs/é"'],
  ['read', 'path', '{"path":"docs/"}'],
  ['read', 'path', '{"path":"/docs/é"}'],
  ['read', 'path', '{"path":" docs/é"}'],
  ['read', 'path', '{"path":"Docs/é"}'],
  ['read', 'path', '{"path":"docs/e\\u0301"}'],
  ['read', 'path', '{"path":"ｄocs/é"}'],
  ['read', 'path', '{"path":["docs/é"]}'],
  ['read', 'path', '{"path":{"0":"d","length":6,"toString":"docs/é"}}'],
  ['read', 'path', '{"path":null}'],
  ['read', 'path', '{"__proto__":{"path":"docs/é"}}'],
  ['read', 'path', '{"arguments":{"path":"docs/é"}}'],
  ['read', 'path', '{"a.path":"docs/é","path.":"docs/é"}'],
  ['set', 'to', '{"to":"5","note":null}'],
  ['set', 'to', '{"to":true,"note":null}'],
  ['set', 'to', '{"to":[5],"note":null}'],
  ['set', 'to', '{"to":5.5,"note":null}'],
  ['set', 'note', '{"to":5}'],
  ['set', 'note', '{"to":5,"note":false}'],
  ['set', 'note', '{"to":5,"note":0}'],
  ['set', 'note', '{"to":5,"note":""}'],
  ['switch', 'on', '{"on":"true"}'],
  ['switch', 'on', '{"on":1}'],
  ['say', 'text', '{"text":"\\u00fc\\"\\n "}'],
  ['say', 'text', '{"text":"u\\u0308\\"\\n"}'],
])('%s is refused because of its %s with %s', async (tool, argument, args) => {
  const answer = await issue({}, { max_uses: 1 });
  const heard = await post(urlOf(answer, 'a'), callText(tool, args));
  expect(heard.status).toBe(200);
  expect(heard.headers['x-presign-code']).toBe('argument_not_allowed');
  const allowed = (CONDITIONS as Record<string, Record<string, object>>)[tool]?.[argument];
  expect(heard.messages).toMatchObject([
    { id: 7, error: { code: -32602, data: { code: 'argument_not_allowed', tool, argument, allowed } } },
  ]);
  expect(ran()).toEqual([]);
  expect(await sumOf(stack, answer)).toEqual({ rows: 0, uses: 0, cost: 0 });
});

test.each([
  ['another case', '{"path":"docs/é","Path":"etc"}'],
  ['a space', '{"path":"docs/é","path ":"etc"}'],
  ['an invisible character', '{"path":"docs/é","pa\\u200bth":"etc"}'],
  ['a wide form', '{"path":"docs/é","ｐath":"etc"}'],
])('%s of an argument is refused, because a server may read it as the argument', async (_what, args) => {
  const heard = await post(urlOf(await issue(), 'a'), callText('read', args));
  expect(heard.messages[0]).toMatchObject({ id: 7, error: { code: -32602 } });
  expect(heard.messages[0]?.error?.message).toContain('params.arguments.path: ');
  expect(ran()).toEqual([]);
});

const READ = '"name":"read","arguments":{"path":"docs/é"}';
test.each([
  ['an argument twice', callText('read', '{"path":"etc","path":"docs/é"}')],
  ['an argument twice, once in escapes', callText('read', '{"p\\u0061th":"etc","path":"docs/é"}')],
  ['arguments twice', `{"id":7,"method":"tools/call","params":{"arguments":{"path":"etc"},${READ}}}`],
  ['arguments in another case', `{"id":7,"method":"tools/call","params":{${READ},"Arguments":{}}}`],
  ['arguments with a space', `{"id":7,"method":"tools/call","params":{${READ},"arguments ":{}}}`],
  ['params twice', `{"id":7,"method":"tools/call","params":{${READ}},"params":{"name":"read"}}`],
  ['params in another case', `{"id":7,"method":"tools/call","params":{${READ}},"Params":{"name":"read"}}`],
  ['the tool in another case', callText('Read', '{"path":"etc"}')],
  ['the tool with a space', callText('read ', '{"path":"etc"}')],
  ['the tool in a wide form', callText('ｒead', '{"path":"etc"}')],
])('%s is refused and reaches no server', async (_what, body) => {
  const heard = await post(urlOf(await issue(), 'a'), body);
  expect([-32600, -32602]).toContain(heard.messages[0]?.error?.code);
  expect(ran()).toEqual([]);
});

test('one forbidden call refuses its whole batch, and a notification is refused, too', async () => {
  const answer = await issue({}, { max_uses: 2 });
  const url = urlOf(answer, 'a');
  const heard = await post(url, [toolCall('read', 1, { path: 'docs/é' }), toolCall('read', 2)]);
  expect(outcomes(heard)).toEqual(['argument_not_allowed', 'argument_not_allowed']);
  const notification = { jsonrpc: '2.0', method: 'tools/call', params: { name: 'read', arguments: {} } };
  expect((await post(url, notification)).status).toBe(403);
  expect(ran()).toEqual([]);
  expect((await sumOf(stack, answer)).uses).toBe(0);
});

test('a worker judges a large call like a small one', async () => {
  const url = urlOf(await issue(), 'a');
  const text = 'x'.repeat(3_000_000);
  expect(outcomes(await post(url, toolCall('read', 1, { text, path: 'docs/é' })))).toEqual(['ran']);
  for (const args of [{ text }, { text, path: 'etc' }])
    expect(outcomes(await post(url, toolCall('read', 1, args)))).toEqual(['argument_not_allowed']);
  const fields = Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`field ${i}`, i]));
  const wide = toolCall('read', 1, { ...fields, path: 'docs/é' });
  expect(outcomes(await post(url, wide))).toEqual(['ran']);
  expect(ran()).toEqual(['read', 'read']);
});

test('over the older transport the refusal is sent on the stream', async () => {
  const answer = await issue({ url: upstream.sseUrl, transport: 'sse' });
  const { stream, endpoint } = await openSession(stack, urlOf(answer, 'a'));
  expect((await post(endpoint, toolCall('read', 'x', { path: 'etc' }))).status).toBe(202);
  const refused = { id: 'x', error: { code: -32602, data: { code: 'argument_not_allowed' } } };
  expect(await stream.reached(1)).toMatchObject([refused]);
  expect((await post(endpoint, toolCall('read', 'y', { path: 'docs/é' }))).status).toBe(202);
  expect(await stream.reached(2)).toMatchObject([refused, { id: 'y', result: {} }]);
  expect(ran()).toEqual(['read']);
  stream.leave();
});

test('every gateway enforces the conditions, from Postgres and from Redis', async () => {
  const answer = await issue();
  const call = toolCall('read', 1, { path: 'etc' });
  for (const gateway of [0, 1]) {
    const url = at(stack, gateway, urlOf(answer, 'a'));
    expect(outcomes(await post(url, call))).toEqual(['argument_not_allowed']);
    expect(outcomes(await post(url, toolCall('read', 1, { path: 'docs/é' })))).toEqual(['ran']);
  }
});

describe('the token', () => {
  const claimsOf = (url: string) => {
    const verified = verifyToken(tokenIn(url), readPublicKeys(stack.keys.publicKeys));
    return mcpClaims.parse(verified.ok && verified.claims);
  };

  test('names the conditions, so that a gateway without them refuses it', async () => {
    const servers = [
      { name: 'a', url: upstream.url, transport: 'http', arguments: CONDITIONS },
      { name: 'b', url: upstream.url, transport: 'http' },
    ];
    const answer = await stack.issueMcp({ servers, bind: { ip_ranges: ['127.0.0.0/8'] } });
    expect(claimsOf(urlOf(answer, 'a')).crt).toEqual(['bind', 'arguments']);
    expect(claimsOf(urlOf(answer, 'b')).crt).toEqual(['bind']);
    expect(answer.claims.crt).toEqual(['bind']);
    const url = urlOf(answer, 'a');
    const claims = { ...claimsOf(url), crt: ['bind', 'arguments', 'of_a_later_version'] };
    const later = signToken(claims as never, readSigningKey(stack.keys.signing));
    const heard = await post(url.replace(tokenIn(url), later), toolCall('read', 1, { path: 'docs/é' }));
    expect(outcomes(heard)).toEqual(['token_invalid']);
    expect(ran()).toEqual([]);
  });

  test('does not need to name the conditions for them to apply', async () => {
    const url = urlOf(await issue(), 'a');
    const { crt: _, ...claims } = claimsOf(url);
    const other = url.replace(tokenIn(url), signToken(claims, readSigningKey(stack.keys.signing)));
    const heard = await post(other, toolCall('read', 1, { path: 'docs/é' }));
    expect(outcomes(heard)).toEqual(['limits_unavailable']);
    expect(ran()).toEqual([]);
  });
});

test('the session shows the conditions', async () => {
  const { session_id } = await issue({ tools: ['read', 'set', 'switch', 'say'] });
  const session = await fetch(`${stack.issuerUrl}/v1/sessions/${session_id}`, {
    headers: { authorization: `Bearer ${stack.apiKey}` },
  });
  const { grants } = (await session.json()) as { grants: { server: object | null }[] };
  expect(grants.flatMap(({ server }) => server ?? [])).toEqual([
    {
      ...{ name: 'a', url: upstream.url, transport: 'http' },
      ...{ tools: ['read', 'set', 'switch', 'say'], arguments: CONDITIONS },
    },
  ]);
});

describe('the official client with the reference server', () => {
  let everything: Everything;
  beforeAll(async () => {
    everything = await startEverything('http');
  });
  afterAll(() => everything.close());

  test('runs allowed calls, and gets the reason of a refusal', async () => {
    const conditions = { 'get-sum': { a: { equals: 2 } }, echo: { message: { prefix: 'Hi' } } };
    const servers = [{ name: 'all', url: everything.url, transport: 'http', arguments: conditions }];
    const answer = await stack.issueMcp({ servers, max_uses: 2 });
    const client = new Client({ name: 'test', version: '1.0.0' });
    await client.connect(new StreamableHTTPClientTransport(new URL(urlOf(answer, 'all'))) as Transport);
    const call = (name: string, args: object) =>
      client.callTool({ name, arguments: { ...args } }).then(
        ({ content }) => content,
        ({ code, message }) => ({ code, message }),
      );
    expect(await call('get-sum', { a: 2, b: 3 })).toMatchObject([{ text: 'The sum of 2 and 3 is 5.' }]);
    expect(await call('get-sum', { a: 3, b: 3 })).toMatchObject({
      ...{ code: -32602, message: expect.stringContaining('only with a 2') },
    });
    expect(await call('echo', { message: 'Hello' })).toMatchObject({
      ...{ code: -32602, message: expect.stringContaining('begins with "Hi"') },
    });
    expect(await call('echo', { message: 'Hi there' })).toMatchObject([{ text: 'Echo: Hi there' }]);
    await client.close();
    expect(await sumOf(stack, answer)).toMatchObject({ rows: 2, uses: 2 });
  });
});

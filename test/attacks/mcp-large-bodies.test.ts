import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { openSocket } from '../harness/raw-http.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { ask, outcomes, post, type RpcAnswer, toolCall, urlOf } from '../mcp/holder.ts';
import { type McpUpstream, startMcpUpstream } from '../mcp/upstream.ts';

let upstream: McpUpstream;
let stack: Stack;
beforeAll(async () => {
  upstream = await startMcpUpstream();
  stack = await startStack({ providers: {} });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});
afterEach(() => {
  expect(upstream.ran.filter((name) => name !== 'spends')).toEqual([]);
});

const issue = (policy: object = {}) =>
  stack.issueMcp({ servers: [{ name: 'a', url: upstream.url, transport: 'http' }], ...policy });

async function revoked() {
  const answer = await issue();
  await post(urlOf(answer, 'a'), ask('ping'));
  const headers = { authorization: `Bearer ${stack.apiKey}` };
  const path = `/v1/sessions/${answer.session_id}`;
  expect((await fetch(stack.issuerUrl + path, { method: 'DELETE', headers })).status).toBe(204);
  return urlOf(answer, 'a');
}

/** It is a call with an id, and then no JSON: only a gateway that does not parse it can answer the id. */
const UNREADABLE = `${JSON.stringify(toolCall('run', 'the id'))} not JSON ${' '.repeat(100_000)}`;

test.each<[string, string | Buffer, Record<string, string>]>([
  ['of a stated length', UNREADABLE, {}],
  ['that is small and coded', gzipSync(UNREADABLE), { 'content-encoding': 'gzip' }],
])(
  'a revoked MCP URL answers the ids of a large body %s without parsing it',
  async (_what, body, headers) => {
    const heard = await post(await revoked(), body, headers);
    expect(heard.status).toBe(200);
    expect(heard.messages).toMatchObject([{ id: 'the id', error: { data: { code: 'grant_revoked' } } }]);
  },
);

test('a revoked MCP URL answers with the ids of a chunked body without parsing the body', async () => {
  const url = new URL(await revoked());
  const socket = await openSocket(url.origin);
  const answered = new Promise<string>((resolve) => socket.once('data', (bytes) => resolve(String(bytes))));
  const head = `POST ${url.pathname}${url.search} HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: chunked\r\n\r\n`;
  const chunk = '{"jsonrpc":"2.0","id":7,"method":"ping"} not JSON';
  socket.write(`${head}${chunk.length.toString(16)}\r\n${chunk}\r\n0\r\n\r\n`);
  const text = await answered;
  socket.destroy();
  expect(text).toMatch(/^HTTP\/1.1 200 /);
  const body = JSON.parse(text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1)) as RpcAnswer;
  expect(body).toMatchObject({ id: 7, error: { data: { code: 'grant_revoked' } } });
});

test('with no uses left, free methods of any size pass, and calls of any size are refused', async () => {
  const url = urlOf(await issue({ max_uses: 1 }), 'a');
  expect(outcomes(await post(url, toolCall('spends')))).toEqual(['ran']);
  const large = { padding: 'x'.repeat(100_000) };
  expect(outcomes(await post(url, { ...ask('tools/list'), params: large }))).toEqual(['ran']);
  expect(outcomes(await post(url, toolCall('run', 1, large)))).toEqual(['uses_exhausted']);
});

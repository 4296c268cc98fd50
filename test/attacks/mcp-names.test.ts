import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { outcomes, post, sumOf, toolCall, urlOf } from '../mcp/holder.ts';
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

const pricing = { default: 1, tools: { deep: 50_000 } };
const issue = (server: object) =>
  stack.issueMcp({ servers: [{ name: 'a', url: upstream.url, transport: 'http', ...server }] });
const named = (name: unknown) => ({ ...toolCall('x'), params: { name } });

test.each([
  ['a list that holds it', named(['deep']), -32602],
  ['an object', named({ toString: 'deep' }), -32602],
  ['no string at all', named(7), -32602],
  ['parameters by position', { ...toolCall('x'), params: ['deep'] }, -32602],
  ['the name in another case', named('Deep'), -32602],
  ['the name behind a space', named(' deep'), -32602],
  ['the name in full-width letters', named('ｄｅｅｐ'), -32602],
  ['the name with an invisible character', named('de\u2060ep'), -32602],
  ['the method in another case', { ...toolCall('deep'), method: 'Tools/Call' }, -32601],
  ['the method behind a space', { ...toolCall('deep'), method: ' tools/call' }, -32601],
  ['the method in full-width letters', { ...toolCall('deep'), method: 'tools／call' }, -32601],
])('an expensive tool does not run at the default price when its name is %s', async (_how, message, code) => {
  const answer = await issue({ pricing });
  const before = upstream.arrived.length;
  const heard = await post(urlOf(answer, 'a'), message);
  expect(heard.status).toBe(200);
  expect(heard.messages).toMatchObject([{ id: 1, error: { code, data: { code: 'invalid_request' } } }]);
  expect(upstream.arrived).toHaveLength(before);
  expect(await sumOf(stack, answer)).toEqual({ rows: 0, uses: 0, cost: 0 });
});

test.each([
  ['in another case', { ...toolCall('drop'), method: 'Tools/Call' }],
  ['with a line end', { ...toolCall('drop'), method: 'tools/call\n' }],
])('a method %s does not bypass the list of allowed tools, alone or in a batch', async (_how, message) => {
  const answer = await issue({ tools: ['look'] });
  const before = upstream.arrived.length;
  expect(outcomes(await post(urlOf(answer, 'a'), message))).toEqual(['invalid_request']);
  const batch = await post(urlOf(answer, 'a'), [toolCall('look', 'l'), { ...message, id: 2 }]);
  expect(batch.messages).toMatchObject([{ id: 'l' }, { id: 2 }]);
  expect(upstream.arrived).toHaveLength(before);
});

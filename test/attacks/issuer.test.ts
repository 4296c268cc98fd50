import { afterAll, beforeAll, expect, test } from 'vitest';
import { askRaw } from '../harness/raw-http.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { least, refused, send } from '../issuer/ask.ts';

let stack: Stack;
beforeAll(async () => {
  stack = await startStack({ providers: {} });
});
afterAll(() => stack.close());

const MIB = 1024 * 1024;
const body = (metadata: string) => `${JSON.stringify(least).slice(0, -1)},"metadata":${metadata}}`;

/** Each kept the issuer busy for seconds: names of deeply nested places were spelled out for each level. */
test.each([
  ['lists nested 500,000 deep', body('['.repeat(MIB / 2 - 200) + ']'.repeat(MIB / 2 - 200))],
  ['objects nested 150,000 deep', body(`${'{"a":'.repeat(150_000)}1${'}'.repeat(150_000)}`)],
  ['300,000 empty lists', body(`[${'[],'.repeat(300_000)}0]`)],
  ['100,000 names', body(`{${Array.from({ length: 100_000 }, (_, i) => `"${i}":1`)}}`)],
])('the issuer refuses %s before it parses them, and the error names the bounds', async (_what, text) => {
  const sent = await send(stack, { body: text });
  refused(sent, 'invalid_request', 'metadata');
  expect(sent.text).toContain('100 levels deep and have 50000 values');
});

test('metadata at its maximum size is accepted', async () => {
  const deepest = '['.repeat(63) + ']'.repeat(63);
  const many = `[${'0,'.repeat(30_000)}0]`;
  for (const metadata of [`{"a":${deepest}}`, `{"a":${many}}`])
    expect((await send(stack, { body: body(metadata) })).status).toBe(200);
});

test.each([
  ['two Hosts', 'HTTP/1.1', ['Host: i', 'Host: holder']],
  ['two equal Hosts in other cases', 'HTTP/1.1', ['Host: i', 'HOST: i']],
  ['HTTP/2.0 in its request line', 'HTTP/2.0', ['Host: i']],
])('the issuer refuses a request with %s, and closes the connection', async (_what, version, hosts) => {
  const key = `Authorization: Bearer ${stack.apiKey}`;
  const head = [`GET /v1/sessions ${version}`, ...hosts, key, '', ''].join('\r\n');
  const answer = await askRaw(stack.issuerUrl, head);
  expect(answer.status).toBe(400);
  expect(answer.headers).toContainEqual(['connection', 'close']);
  expect(JSON.parse(answer.body)).toMatchObject({ error: { code: 'invalid_request' } });
});

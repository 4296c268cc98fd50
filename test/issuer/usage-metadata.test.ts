import { callAnswer, callPage, usageReport } from '@presign/schema';
import { usageDays } from '@presign/schema/ledger-tables';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callsSettled } from '../harness/calls-settled.ts';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { refused, send } from './ask.ts';
import { startSweeps } from './sweeps.ts';

const DECLARED = ['feature', 'team'];

let upstream: Upstream;
let stack: Stack;
beforeAll(async () => {
  upstream = await startUpstream((_seen, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
  });
  const providers = { openai: { base_url: upstream.url } };
  stack = await startStack({ providers, issuer: { usageMetadata: DECLARED } });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

/** Calls a URL that was issued with this metadata, and once more than it may: the second call is refused. */
async function callWith(metadata: object): Promise<void> {
  const ask = { provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk', max_uses: 1 };
  const { url } = await stack.issue({ ...ask, metadata });
  for (const status of [200, 403])
    expect((await fetch(url, { method: 'POST', body: '{}' })).status).toBe(status);
}
const get = (path: string) => send(stack, { method: 'GET', path });
const usage = async (query: string) => {
  const sent = await get(`/v1/usage?${query}`);
  expect(sent.status, sent.text).toBe(200);
  return usageReport.parse(JSON.parse(sent.text));
};
const calls = async (query: string) => {
  const sent = await get(`/v1/calls?${query}`);
  expect(sent.status, sent.text).toBe(200);
  return callPage.parse(JSON.parse(sent.text)).data;
};

describe('calls of URLs with metadata', () => {
  beforeAll(async () => {
    await callWith({ team: 'red', feature: 'chat', secret: 'not declared' });
    await callWith({ team: 'red', feature: 7 });
    await callWith({ team: 'blue', feature: { nested: true } });
    await callWith({ team: 'x'.repeat(256) });
    await callWith({});
    await callsSettled(stack);
    await eventually(async () => (await calls('outcome=refused')).length === 5);
  });

  test('are grouped by each declared key, and by two keys', async () => {
    const rows = (await usage('group_by=metadata.team')).data.map((row) => [row.metadata?.team, row.calls]);
    expect(rows).toEqual([
      ['blue', 1],
      ['red', 2],
      [null, 2],
    ]);
    const both = await usage('group_by=metadata.team&group_by=metadata.feature');
    expect(both.group_by).toEqual(['metadata.team', 'metadata.feature']);
    expect(both.data.map((row) => [row.metadata?.team, row.metadata?.feature, row.calls])).toEqual([
      ['blue', null, 1],
      ['red', '7', 1],
      ['red', 'chat', 1],
      [null, null, 2],
    ]);
  });

  test('are found by a metadata value, in either form of the query, including refused calls', async () => {
    for (const query of ['metadata.team=red', 'metadata[team]=red', 'metadata%5Bteam%5D=red']) {
      expect((await usage(query)).total.calls).toBe(2);
      expect(await calls(query)).toHaveLength(2);
      expect(await calls(`outcome=refused&${query}`)).toHaveLength(2);
      expect(await calls(`outcome=all&${query}`)).toHaveLength(4);
    }
    expect((await usage('metadata.team=red&metadata.feature=chat')).total.calls).toBe(1);
    expect((await usage('metadata.team=Red')).total.calls).toBe(0);
  });

  test('show only the declared keys', async () => {
    const [call] = await calls('metadata.feature=chat');
    expect(call?.metadata).toEqual({ feature: 'chat', team: 'red' });
    const one = callAnswer.parse(JSON.parse((await get(`/v1/calls/${call?.request_id}`)).text));
    expect(one.metadata).toEqual(call?.metadata);
    expect((await calls('')).map(({ metadata }) => metadata)).toContainEqual(null);
    expect((await get('/v1/calls?format=csv')).text).toContain('red');
  });

  test('keep them in the daily sums', async () => {
    const before = await usage('from=0&group_by=metadata.team,metadata.feature');
    await stack.db.execute(`update ledger set settled_at = settled_at - interval '10 days'`);
    const sweeps = await startSweeps(stack);
    await sweeps.sweep({ ledgerDays: 10_000, usageDays: 10_000 });
    await eventually(
      async () => (await stack.db.$count(usageDays, eq(usageDays.tags, { team: 'blue' }))) > 0,
    );
    await sweeps.close();
    const after = await usage('from=0&group_by=metadata.team,metadata.feature');
    expect(after.data).toEqual(before.data);
  });
});

/** JSON has these, and no text of Postgres does. Keys that the operator has not declared, and members within members, count. */
const UNREADABLE: readonly (readonly [metadata: object, team: string | undefined])[] = [
  [{ team: 'a\0b' }, 'a\ufffdb'],
  [{ team: 'nul', note: '\0\0' }, 'nul'],
  [{ team: 'name', '\0': 1 }, 'name'],
  [{ team: 'deep', note: { a: ['\0'] } }, 'deep'],
  [{ team: 'half \ud800' }, 'half \ufffd'],
  [{ team: 'halves', note: '\udc00\udbff' }, 'halves'],
  [{ team: 'escaped \\u0000 \\\\ud800 \\\0' }, 'escaped \\u0000 \\\\ud800 \\\ufffd'],
  [{ team: 'pair 😀' }, 'pair 😀'],
];

test.each(UNREADABLE)('%j never stops other calls from reaching the ledger', async (metadata, team) => {
  await callWith(metadata);
  await callsSettled(stack);
  await eventually(
    async () => (await calls(`outcome=refused&metadata.team=${encodeURIComponent(team ?? '')}`)).length === 1,
  );
  expect(await calls(`metadata.team=${encodeURIComponent(team ?? '')}`)).toMatchObject([
    { metadata: { team } },
  ]);
});

test('pages of groups continue, whether group_by is one parameter or two', async () => {
  for (const by of ['group_by=metadata.team,day', 'group_by=metadata.team&group_by=day']) {
    const first = await get(`/v1/usage?from=0&limit=1&${by}`);
    const [, next = ''] = /<([^>]*)>/.exec(first.headers.get('link') ?? '') ?? [];
    const second = await get(`/v1/usage${next}`);
    expect(second.status, second.text).toBe(200);
    expect(usageReport.parse(JSON.parse(second.text)).data).toHaveLength(1);
  }
});

test.each([
  ['/v1/usage?group_by=metadata.secret', 'group_by'],
  ['/v1/usage?metadata.secret=x', 'metadata.secret'],
  ['/v1/calls?metadata[secret]=x', 'metadata.secret'],
  ['/v1/usage?metadata.__proto__=x', 'metadata.__proto__'],
  ['/v1/calls?metadata[__proto__]=x', 'metadata[__proto__]'],
  ['/v1/usage?metadata.team=a%00', 'metadata.team'],
  ['/v1/calls?metadata.team=%00', 'metadata.team'],
  ['/v1/usage?group_by=metadata.', 'group_by'],
  ['/v1/usage?group_by=metadata', 'group_by'],
  ['/v1/usage?metadata=x', 'metadata'],
  ['/v1/usage?metadata.team=a&metadata.team=b', 'metadata.team'],
  ['/v1/usage?metadata.team=a&metadata[team]=b', 'metadata[team]'],
])('%s is refused, and the error names its parameter', async (path, param) => {
  refused(await get(path), 'invalid_request', param);
});

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { freePort } from '../harness/free-port.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { socketsRead } from '../harness/thorough.ts';
import { ask, at, ledgerOf, outcomes, post, sumOf, toolCall, urlOf } from './holder.ts';
import { eventOf, type McpUpstream, run, startMcpUpstream } from './upstream.ts';

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
beforeEach(() => {
  upstream.form = 'json';
  upstream.behaves = undefined;
});

const pricing = { default: 300, tools: { dear: 70_000 } };
const issue = (policy: object, url = upstream.url) =>
  stack.issueMcp({ servers: [{ name: 'a', url, transport: 'http', pricing }], ...policy });

test('a server that runs nothing gets exactly 21 calls under max_uses 1, over two gateways', async () => {
  const answer = await issue({ max_uses: 1, cost_limit: 1_000 });
  const url = urlOf(answer, 'a');
  const before = upstream.arrived.length;
  const loop = async (gateway: number) => {
    for (let i = 0; i < 40; i++) await post(at(stack, gateway, url), toolCall('error-32601'));
  };
  await Promise.all([loop(0), loop(1), loop(0), loop(1)]);
  expect(upstream.arrived.length - before).toBe(21);
  expect(outcomes(await post(url, toolCall('run')))).toEqual(['uses_exhausted']);
  expect(await sumOf(stack, answer)).toEqual({ rows: 41, uses: 1, cost: 300 });
});

test('a batch that did not run is refunded in one row, and logs one line', async () => {
  const answer = await issue({ max_uses: 100 });
  const logged = stack.logs.length;
  const batch = Array.from({ length: 100 }, (_, i) => toolCall('error-32601', i));
  expect(new Set(outcomes(await post(urlOf(answer, 'a'), batch)))).toEqual(new Set([-32601]));
  expect(await sumOf(stack, answer)).toEqual({ rows: 2, uses: 0, cost: 0 });
  const lines = stack.logs.slice(logged).filter((line) => line.includes(answer.session_id));
  expect(lines).toHaveLength(1);
});

test('the ledger has the calls of each price, and the refunded ones without a price', async () => {
  const answer = await issue({ max_uses: 10, cost_limit: 200_000 });
  const batch = [toolCall('run', 1), toolCall('dear', 2), toolCall('run', 3), toolCall('error-32601', 4)];
  await post(urlOf(answer, 'a'), batch);
  const rows = await ledgerOf(stack, answer);
  expect(rows.map(({ costMicrousd, priceLines }) => [costMicrousd, priceLines])).toEqual([
    [
      70_900,
      [
        ['calls', 3, 300],
        ['calls', 1, 70_000],
      ],
    ],
    [-300, null],
  ]);
});

test('a batch with more than 20 prices is recorded without a line for each', async () => {
  const tools = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`tool-${i}`, i + 1]));
  const servers = [{ name: 'a', url: upstream.url, transport: 'http', pricing: { tools } }];
  const answer = await stack.issueMcp({ servers, max_uses: 200, cost_limit: 200_000 });
  const calls = (count: number) => Array.from({ length: count }, (_, i) => toolCall(`tool-${i}`, i));
  await post(urlOf(answer, 'a'), calls(20));
  await post(urlOf(answer, 'a'), calls(21));
  await post(urlOf(answer, 'a'), calls(100));
  const rows = await ledgerOf(stack, answer);
  const found = rows.map(({ costMicrousd, priceLines }) => [costMicrousd, priceLines?.length]);
  expect(found.sort(([a = 0], [b = 0]) => Number(a) - Number(b))).toEqual([
    [210, 20],
    [231, undefined],
    [5_050, undefined],
  ]);
});

describe.each(['json', 'sse'] as const)('in an answer of form %s', (form) => {
  beforeEach(() => {
    upstream.form = form;
  });

  test('-32601 refunds use and cost, so that an immediate retry at any gateway sees the refund', async () => {
    const answer = await issue({ max_uses: 1, cost_limit: 300 });
    const url = urlOf(answer, 'a');
    for (let i = 0; i < 6; i++) {
      expect(outcomes(await post(at(stack, i % 2, url), toolCall('error-32601')))).toEqual([-32601]);
    }
    expect(outcomes(await post(url, toolCall('run')))).toEqual(['ran']);
    expect(outcomes(await post(url, toolCall('run')))).toEqual(['uses_exhausted']);
    expect(await sumOf(stack, answer)).toEqual({ rows: 13, uses: 1, cost: 300 });
  });

  test.each([
    ['a result that is an error', 'fails', 'ran'],
    ['-32600, which proxies send, too', 'error-32600', -32600],
    ['-32602, which tools that ran send, too', 'error-32602', -32602],
    ['-32603', 'error-32603', -32603],
    ['-32700, which proxies send, too', 'error-32700', -32700],
    ['an error of its own', 'error-32000', -32000],
  ])('%s refunds nothing', async (_what, tool, outcome) => {
    const answer = await issue({ max_uses: 1 });
    expect(outcomes(await post(urlOf(answer, 'a'), toolCall(tool)))).toEqual([outcome]);
    expect(outcomes(await post(urlOf(answer, 'a'), toolCall('run')))).toEqual(['uses_exhausted']);
    expect(await sumOf(stack, answer)).toEqual({ rows: 1, uses: 1, cost: 300 });
  });

  test('each request of a batch that did not run is refunded at its own price', async () => {
    const answer = await issue({ max_uses: 3 });
    const url = urlOf(answer, 'a');
    const batch = [
      toolCall('error-32601', 1),
      toolCall('dear', 2),
      toolCall('error-32601', 3),
      ask('ping', 4),
    ];
    expect(outcomes(await post(url, batch))).toEqual([-32601, 'ran', -32601, 'ran']);
    const rows = await ledgerOf(stack, answer);
    expect(rows.map((row) => [row.outcome, row.uses, row.costMicrousd])).toEqual([
      ['settled', 3, 70_600],
      ['refunded', -2, -600],
    ]);
    expect(rows.map((row) => [row.server, row.tool, row.provider])).toEqual([
      ['a', 'error-32601', 'mcp'],
      ['a', 'error-32601', 'mcp'],
    ]);
    expect(outcomes(await post(url, [toolCall('run', 1), toolCall('run', 2)]))).toEqual(['ran', 'ran']);
    expect(outcomes(await post(url, toolCall('run')))).toEqual(['uses_exhausted']);
  });
});

test.each([404, 405, 406, 411, 413, 414, 415, 417, 421, 425, 429, 431])(
  'an answer of %i refunds everything and passes unchanged',
  async (status) => {
    const answer = await issue({ max_uses: 2 });
    const url = urlOf(answer, 'a');
    upstream.behaves = (_arrived, response) =>
      response.writeHead(status, { 'content-type': 'text/plain', 'x-request-id': 'yes' }).end('their words');
    for (let i = 0; i < 3; i++) {
      const heard = await post(at(stack, i % 2, url), [toolCall('run', 1), toolCall('dear', 2)]);
      expect([heard.status, heard.text, heard.headers['x-request-id']]).toEqual([
        status,
        'their words',
        'yes',
      ]);
    }
    const rows = await ledgerOf(stack, answer);
    expect(rows.filter((row) => row.outcome === 'refunded').map((row) => [row.uses, row.status])).toEqual(
      Array(3).fill([-2, status]),
    );
    upstream.behaves = undefined;
    expect(outcomes(await post(url, [toolCall('run', 1), toolCall('run', 2)]))).toEqual(['ran', 'ran']);
    expect(await sumOf(stack, answer)).toEqual({ rows: 7, uses: 2, cost: 600 });
  },
);

test.each([400, 402, 408, 409, 422, 500, 502, 503, 504])(
  'an answer of %i, which a proxy may send after the call ran, keeps the charge and passes unchanged',
  async (status) => {
    const answer = await issue({ max_uses: 1 });
    upstream.behaves = (_arrived, response) =>
      response.writeHead(status, { 'content-type': 'text/plain' }).end('their words');
    const heard = await post(urlOf(answer, 'a'), toolCall('dear'));
    expect([heard.status, heard.text]).toEqual([status, 'their words']);
    expect(heard.headers).toMatchObject({ 'x-presign-uses-remaining': '0', 'x-presign-cost': '70000' });
    expect(outcomes(await post(urlOf(answer, 'a'), toolCall('run')))).toEqual(['uses_exhausted']);
    expect(await sumOf(stack, answer)).toEqual({ rows: 1, uses: 1, cost: 70_000 });
  },
);

test.each([301, 302, 307, 308])(
  'a redirect (%i) to another origin refunds everything, and is not followed',
  async (status) => {
    const answer = await issue({ max_uses: 1 });
    const before = upstream.arrived.length;
    const location = `${upstream.url.replace('127.0.0.1', 'localhost')}/`;
    upstream.behaves = (_arrived, response) => response.writeHead(status, { location }).end();
    expect(outcomes(await post(urlOf(answer, 'a'), toolCall('run')))).toEqual(['upstream_unreachable']);
    expect(upstream.arrived).toHaveLength(before + 1);
    expect(await sumOf(stack, answer)).toEqual({ rows: 2, uses: 0, cost: 0 });
  },
);

test('a 303 keeps the charge, because work may have run before it', async () => {
  const answer = await issue({ max_uses: 1 });
  upstream.behaves = (_arrived, response) => response.writeHead(303, { location: '/elsewhere' }).end();
  expect(outcomes(await post(urlOf(answer, 'a'), toolCall('run')))).toEqual(['upstream_unreachable']);
  expect(await sumOf(stack, answer)).toEqual({ rows: 1, uses: 1, cost: 300 });
});

test.each([
  ['-32601', 400],
  ['-32601', 404],
  ['-32020', 400],
  ['-32021', 400],
  ['-32022', 400],
  ['-32022', 200],
])('%s in an answer of %i refunds the call', async (code, status) => {
  const answer = await issue({ max_uses: 1 });
  const url = urlOf(answer, 'a');
  upstream.behaves = ({ body }, response) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(run(body, [])[0]));
  expect(outcomes(await post(url, toolCall(`error${code}`)))).toEqual([Number(code)]);
  upstream.behaves = undefined;
  expect(outcomes(await post(url, toolCall('run')))).toEqual(['ran']);
});

test.each([-32600, -32602, -32603, -32700, -32000, -32023])(
  '%i keeps the charge, because the call may have run',
  async (code) => {
    const answer = await issue({ max_uses: 1 });
    expect(outcomes(await post(urlOf(answer, 'a'), toolCall(`error${code}`)))).toEqual([code]);
    expect(await sumOf(stack, answer)).toEqual({ rows: 1, uses: 1, cost: 300 });
  },
);

test('a server that refuses connections refunds everything, and the holder gets a JSON-RPC error', async () => {
  const port = await freePort();
  const answer = await issue({ max_uses: 1 }, `http://127.0.0.1:${port}/mcp`);
  // The third one waits for a while, and is not charged at all.
  for (const [i, status] of [502, 502, 503].entries()) {
    const heard = await post(at(stack, i % 2, urlOf(answer, 'a')), toolCall('run', 'x'));
    expect(heard.status).toBe(status);
    expect(heard.messages).toMatchObject([{ id: 'x', error: { data: { code: 'upstream_unreachable' } } }]);
  }
  expect(await sumOf(stack, answer)).toEqual({ rows: 4, uses: 0, cost: 0 });
});

test('a host name that does not exist refunds everything', async () => {
  const answer = await issue({ max_uses: 1 }, 'http://nowhere.invalid/mcp');
  for (let i = 0; i < 2; i++) {
    expect(outcomes(await post(urlOf(answer, 'a'), toolCall('run')))).toEqual(['upstream_unreachable']);
  }
  expect(await sumOf(stack, answer)).toEqual({ rows: 2, uses: 0, cost: 0 });
});

test('a connection reset after the call was sent refunds nothing', async () => {
  const answer = await issue({ max_uses: 1 });
  upstream.behaves = (_arrived, _response, request) => request.socket.destroy();
  const heard = await post(urlOf(answer, 'a'), toolCall('run', 'x'));
  expect([heard.status, heard.messages[0]?.id, ...outcomes(heard)]).toEqual([
    502,
    'x',
    'upstream_unreachable',
  ]);
  upstream.behaves = undefined;
  expect(outcomes(await post(urlOf(answer, 'a'), toolCall('run')))).toEqual(['uses_exhausted']);
  expect(await sumOf(stack, answer)).toEqual({ rows: 1, uses: 1, cost: 300 });
});

test('a server that accepts the call and closes without an answer causes no refund', async () => {
  const silent = createServer((socket) => socket.once('data', () => socket.destroy())).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const address = silent.address();
  const port = typeof address === 'object' ? address?.port : 0;
  const answer = await issue({ max_uses: 1 }, `http://127.0.0.1:${port}/mcp`);
  expect(outcomes(await post(urlOf(answer, 'a'), toolCall('run')))).toEqual(['upstream_unreachable']);
  expect(await sumOf(stack, answer)).toEqual({ rows: 1, uses: 1, cost: 300 });
  silent.close();
});

test('a stream that breaks off after -32601 refunds only the call that got it', async () => {
  const answer = await issue({ max_uses: 2 });
  const url = urlOf(answer, 'a');
  const error = { jsonrpc: '2.0', id: 1, error: { code: -32601, message: 'no' } };
  upstream.behaves = (_arrived, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(eventOf(error), () => void socketsRead().then(() => response.destroy()));
  };
  const heard = await post(url, [toolCall('run', 1), toolCall('run', 2)]);
  expect(outcomes(heard)).toEqual([-32601, 'upstream_unreachable']);
  upstream.behaves = undefined;
  const sum = await sumOf(stack, answer);
  expect([sum.uses, sum.cost]).toEqual([1, 300]);
});

test.each([
  ['', ''],
  ['an event', eventOf({ jsonrpc: '2.0', method: 'notifications/progress', params: {} })],
  [
    'an event in which clients read no message',
    'event: other\ndata: {"jsonrpc":"2.0","id":1,"result":{}}\n\n',
  ],
])(
  'a stream that ends without its answer (%s) answers the open ids at once, and keeps the charge',
  async (_what, sent) => {
    const answer = await issue({ max_uses: 2 });
    upstream.behaves = (_arrived, response) =>
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end(sent);
    const heard = await post(urlOf(answer, 'a'), [toolCall('run', 1), toolCall('run', 'two')]);
    const errors = heard.messages.filter(({ error }) => error !== undefined);
    expect(errors.map(({ id, error }) => [id, error?.data?.code])).toEqual([
      [1, 'upstream_unreachable'],
      ['two', 'upstream_unreachable'],
    ]);
    expect((await sumOf(stack, answer)).uses).toBe(2);
  },
);

test('a stream whose last event lacks its blank line delivers its answer', async () => {
  const answer = await issue({ max_uses: 1 });
  upstream.behaves = ({ body }, response) =>
    response
      .writeHead(200, { 'content-type': 'text/event-stream' })
      .end(eventOf(run(body, [])[0] ?? {}).trimEnd());
  expect(outcomes(await post(urlOf(answer, 'a'), toolCall('run')))).toEqual(['ran']);
});

test('a stream that its client can resume ends without an answer', async () => {
  const answer = await issue({ max_uses: 1 });
  upstream.behaves = (_arrived, response) =>
    response.writeHead(200, { 'content-type': 'text/event-stream' }).end('id: 7\ndata: \n\n');
  const heard = await post(urlOf(answer, 'a'), toolCall('run'));
  expect([heard.status, heard.messages]).toEqual([200, []]);
});

test('an error without an id does not refund a call of the same batch', async () => {
  const answer = await issue({ max_uses: 1 });
  const url = urlOf(answer, 'a');
  // The error for an unreadable message has no id (JSON-RPC 2.0 §5): it need not mean the call.
  const unread = { jsonrpc: '2.0', id: null, error: { code: -32600, message: 'Invalid Request' } };
  upstream.behaves = ({ body }, response) => {
    const answers = [unread, ...run(body, [])];
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answers));
  };
  const notice = { method: 'notifications/x' };
  expect(outcomes(await post(url, [notice, toolCall('dear')]))).toEqual([-32600, 'ran']);
  expect(await sumOf(stack, answer)).toEqual({ rows: 1, uses: 1, cost: 70_000 });
});

test.each([
  ['a cheap call', toolCall('error-32601', 1), 2],
  ['a free request', { ...ask('ping', 1), params: { name: 'error-32601' } }, 1],
])('an error for %s refunds nothing of an expensive call with the same id', async (_what, cheap, uses) => {
  const answer = await issue({ max_uses: 2 });
  expect(outcomes(await post(urlOf(answer, 'a'), [cheap, toolCall('dear', 1)]))).toEqual([-32601, 'ran']);
  const sum = await sumOf(stack, answer);
  expect([sum.rows, sum.uses, sum.cost]).toEqual([1, uses, 70_000 + (uses - 1) * 300]);
});

test('an error longer than the buffer passes unchanged', async () => {
  const answer = await issue({ max_uses: 5 });
  const long = randomBytes(1_500_000).toString('hex');
  upstream.behaves = (_arrived, response) => {
    const error = { jsonrpc: '2.0', id: 1, error: { code: -32601, message: long } };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(error));
  };
  const heard = await post(urlOf(answer, 'a'), toolCall('run'));
  expect(heard.messages[0]?.error?.message).toBe(long);
});

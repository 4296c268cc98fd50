import type { ServerResponse } from 'node:http';
import { revokeGrant } from '@presign/limits';
import { request } from 'undici';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { at, grantIn, outcomes, post, sumOf, tokenIn, toolCall, urlOf } from './holder.ts';
import { openSession } from './listen.ts';
import { type McpUpstream, startMcpUpstream } from './upstream.ts';

let upstream: McpUpstream;
let stack: Stack;
/** Answers that have begun as streams. */
let begun: ServerResponse[] = [];

beforeAll(async () => {
  stack = await startStack({ providers: {}, gateways: 2 });
});
afterAll(() => stack.close());
beforeEach(async () => {
  begun = [];
  upstream = await startMcpUpstream();
});
afterEach(() => upstream.close());

const issue = (policy: object = {}, server: object = {}) =>
  stack.issueMcp({ servers: [{ name: 'a', url: upstream.url, transport: 'http', ...server }], ...policy });
const asked = (id: string, method = 'tools/call', name = 'run') =>
  `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":{"name":"${name}"}}`;
const TOOLS = '{"tools":[{"name":"run"},{"name":"other"}]}';

/** A server that repeats ids digit by digit, as those in Go, Rust and Java do. */
function repeats(form: 'json' | 'sse', result = TOOLS) {
  upstream.behaves = ({ method, body }, response) => {
    if (method !== 'POST') return false;
    const answers = [...body.matchAll(/"id":([^,]+)/g)].map(
      ([, id]) => `{"jsonrpc":"2.0","id":${id},"result":${result}}`,
    );
    const text = body.startsWith('[') ? `[${answers.join()}]` : (answers[0] ?? '');
    const type = form === 'json' ? 'application/json' : 'text/event-stream';
    response.writeHead(200, { 'content-type': type });
    return response.end(form === 'json' ? text : `event: message\ndata: ${text}\n\n`) && true;
  };
}
/** A server that leaves the answer to each POST open. */
const leavesOpen = () => {
  begun = [];
  upstream.behaves = ({ method, body }, response) => {
    if (method !== 'POST' || body.includes('"notifications/')) return false;
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    return begun.push(response);
  };
};
const idsIn = (text: string) => [...text.matchAll(/"id":([^,]+),/g)].map(([, id]) => id);
const revoke = (url: string) => revokeGrant(stack.redis, grantIn(tokenIn(url)));

/** The ways in which an answer reaches a holder who sends these ids. */
const WAYS: Readonly<Record<string, (body: string) => Promise<string>>> = {
  'of a server, in JSON': async (body) => {
    repeats('json');
    return (await post(urlOf(await issue(), 'a'), body)).text;
  },
  'of a server, on a stream': async (body) => {
    repeats('sse');
    return (await post(urlOf(await issue(), 'a'), body)).text;
  },
  'that is a filtered list': async (body) => {
    repeats('json');
    const url = urlOf(await issue({}, { tools: ['run'] }), 'a');
    const { text } = await post(url, body.replaceAll('tools/call', 'tools/list'));
    expect(text).not.toContain('other');
    return text;
  },
  'that refuses a tool': async (body) => (await post(urlOf(await issue({}, { tools: [] }), 'a'), body)).text,
  'that refuses for want of uses': async (body) => {
    const url = urlOf(await issue({ max_uses: 1 }), 'a');
    await post(url, toolCall('run'));
    return (await post(url, body)).text;
  },
  'of a URL that is revoked': async (body) => {
    const url = urlOf(await issue(), 'a');
    await revoke(url);
    return (await post(url, body)).text;
  },
  'in place of JSON that broke off': async (body) => {
    upstream.behaves = (_arrived, response) =>
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .write('{"jsonrpc":', () => response.destroy());
    return (await post(urlOf(await issue(), 'a'), body)).text;
  },
  'in place of what a stream that ended did not bring': async (body) => {
    leavesOpen();
    const heard = request(urlOf(await issue(), 'a'), { method: 'POST', body });
    (await eventually(async () => begun[0])).end();
    return (await heard).body.text();
  },
  'on a stream of the older transport': async (body) => {
    const url = urlOf(await issue({ max_uses: 1 }, { url: upstream.sseUrl, transport: 'sse' }), 'a');
    const { stream, endpoint } = await openSession(stack, url);
    await post(endpoint, toolCall('run', 'first'));
    await stream.reached(1);
    expect((await post(endpoint, body)).status).toBe(202);
    await stream.reached(2);
    stream.leave();
    return stream.text().slice(stream.text().indexOf('"error"') - 60);
  },
  'on a stream of the older transport that is cut': async (body) => {
    upstream.behaves = ({ method }, response) => method === 'POST' && response.writeHead(202).end();
    const url = urlOf(await issue({}, { url: upstream.sseUrl, transport: 'sse' }), 'a');
    const { stream, endpoint } = await openSession(stack, url);
    await post(at(stack, 1, endpoint), body);
    await revoke(url);
    await stream.over;
    return stream.text();
  },
};

describe.each(['9007199254740993', '-9223372036854775808', '18446744073709551616', '7', '"7"'])(
  'the id %s returns digit by digit',
  (id) => {
    test.each(Object.keys(WAYS))('in an answer %s', async (way) => {
      expect(idsIn((await WAYS[way]?.(asked(id))) ?? '')).toEqual([id]);
      const [first, second] = [asked(id), asked('18446744073709551617')];
      expect(idsIn((await WAYS[way]?.(`[${first},${second}]`)) ?? '')).toEqual([id, '18446744073709551617']);
    });

    test('to a notification that cancels its request', async () => {
      leavesOpen();
      const url = urlOf(await issue({ concurrent_calls: 1 }), 'a');
      void request(url, { method: 'POST', body: asked(id) }).then(({ body }) => body.dump());
      await eventually(async () => begun[0]);
      const other = id === '18446744073709551617' ? '1' : '18446744073709551617';
      const cancel = (requestId: string) =>
        post(url, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${requestId}}}`);
      await cancel(other);
      expect(outcomes(await post(url, toolCall('next', 'next')))).toEqual(['concurrency_limited']);
      await cancel(id);
      upstream.behaves = undefined;
      await eventually(async () => outcomes(await post(url, toolCall('next', 'next')))[0] === 'ran');
    });
  },
);

test('an error for one of two ids that a server may confuse refunds neither', async () => {
  const answer = await issue({ max_uses: 2 });
  const error = '{"jsonrpc":"2.0","id":9007199254740992,"error":{"code":-32601,"message":"no"}}';
  upstream.behaves = (_arrived, response) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(`[${error}]`);
  await post(urlOf(answer, 'a'), `[${asked('9007199254740993')},${asked('9007199254740992')}]`);
  expect((await sumOf(stack, answer)).uses).toBe(2);
});

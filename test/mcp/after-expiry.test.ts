import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { revokeGrant } from '@presign/limits';
import { request } from 'undici';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { ask, at, grantIn, outcomes, post, send, tokenIn, toolCall, urlOf } from './holder.ts';
import { type Listener, listen, openSession } from './listen.ts';
import { eventOf, listId, type McpUpstream, startMcpUpstream } from './upstream.ts';

let upstream: McpUpstream;
let stack: Stack;
let aheadMs = 0;
/** Answers that the server has begun as streams, in order. */
let begun: ServerResponse[] = [];
const open: Listener[] = [];

beforeAll(async () => {
  stack = await startStack({ providers: {}, gateways: 2, gateway: { now: () => Date.now() + aheadMs } });
});
afterAll(() => stack.close());
beforeEach(async () => {
  aheadMs = 0;
  begun = [];
  upstream = await startMcpUpstream();
  upstream.behaves = ({ method, body, url }, response) => {
    if (method === 'POST' && (url.startsWith('/messages') || !body.includes('"tools/call"')))
      return response.writeHead(202).end('Accepted');
    if (url.startsWith('/sse')) return false;
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    return begun.push(response);
  };
});
afterEach(async () => {
  for (const each of open.splice(0)) each.leave();
  await upstream.close();
});

type Transport = 'http' | 'sse';
const issue = async (transport: Transport = 'http', policy: object = {}) => {
  const url = transport === 'http' ? upstream.url : upstream.sseUrl;
  return urlOf(await stack.issueMcp({ servers: [{ name: 'a', url, transport, ...policy }] }), 'a');
};
/** Lets the URL end, and so many ms more. */
const end = (url: string, pastMs = 1_000) => {
  aheadMs = grantIn(tokenIn(url)).expiresAtMs - Date.now() + pastMs;
};
const UPSTREAM_TIMEOUT_MS = 60_000;
const answer = (id: string | number) => ({ jsonrpc: '2.0', id, result: { content: [] } });
const withId = (id: string, data = '') => `id: ${id}\ndata: ${data}\n\n`;
const lastId = (text: string) => [...text.matchAll(/^id: (.*)$/gm)].at(-1)?.[1] ?? '';
const bodies = () => upstream.arrived.map(({ body }) => body);
const serverHas = (text: string) => eventually(async () => bodies().some((body) => body.includes(text)));

/** A call whose server closes its stream before the answer, so that its client asks for the rest of it. Returns the event's id. */
async function polled(url: string, message: object = toolCall('run', 1)) {
  const heard = request(url, { method: 'POST', body: JSON.stringify(message) });
  (await eventually(async () => begun[0])).end(withId('e1'));
  return lastId(await (await heard).body.text());
}
const resume = async (url: string, id: string) => {
  const stream = await listen(url, { 'last-event-id': id });
  open.push(stream);
  return stream;
};

describe('a call that was admitted before its URL ended', () => {
  test('is answered on the stream that its client resumes, at any gateway and several times', async () => {
    const url = await issue();
    const first = await polled(url);
    end(url);
    const again = await resume(at(stack, 1, url), first);
    begun[1]?.end(withId('e2'));
    expect(await again.over).toBe('ended');
    expect(upstream.arrived.at(-1)?.headers['last-event-id']).toBe('e1');
    const last = await resume(url, lastId(again.text()));
    expect(upstream.arrived.at(-1)?.headers['last-event-id']).toBe('e2');
    begun[2]?.write(`id: e3\n${eventOf(answer(1))}`);
    // Its server leaves the stream open.
    expect(await last.over).toBe('ended');
    expect(last.text()).toContain(JSON.stringify(answer(1)));
    // The event with the answer leaves nothing to wait for.
    const after = await send(url, 'GET', { 'last-event-id': lastId(last.text()) });
    expect([after.status, outcomes(after)]).toEqual([405, ['token_expired']]);
  });

  test('is answered on a stream that its client resumed before the URL ended', async () => {
    const url = await issue();
    const id = await polled(url);
    end(url, -1_000);
    const stream = await resume(url, id);
    await eventually(async () =>
      Date.now() + aheadMs > grantIn(tokenIn(url)).expiresAtMs ? true : undefined,
    );
    // Timers of the end have rung.
    await sleep(200);
    begun[1]?.write(eventOf(answer(1)));
    expect(await stream.over).toBe('ended');
    expect(stream.messages()).toEqual([answer(1)]);
  });

  test('gets errors for its requests when its URL is revoked, and cannot resume a stream then', async () => {
    const url = await issue();
    const id = await polled(url, [toolCall('run', 1), toolCall('run', 2)]);
    end(url);
    const stream = await resume(url, id);
    begun[1]?.write(eventOf(answer(2)));
    await stream.reached(1);
    await revokeGrant(stack.redis, grantIn(tokenIn(url)));
    expect(await stream.over).toBe('ended');
    expect(stream.messages()).toMatchObject([
      answer(2),
      { id: 1, error: { data: { code: 'grant_revoked' } } },
    ]);
    expect((await send(url, 'GET', { 'last-event-id': id })).status).toBe(405);
  });

  test('cannot resume a stream later than UPSTREAM_TIMEOUT_SECONDS after the end, and a resumed stream ends then', async () => {
    const url = await issue();
    const id = await polled(url);
    end(url, UPSTREAM_TIMEOUT_MS - 1_500);
    const stream = await resume(url, id);
    expect(await stream.over).toBe('ended');
    expect(stream.messages()).toMatchObject([{ id: 1, error: { data: { code: 'token_expired' } } }]);
    end(url, UPSTREAM_TIMEOUT_MS);
    expect((await send(url, 'GET', { 'last-event-id': id })).status).toBe(405);
  });

  test('cannot be resumed with an event of a stream without calls', async () => {
    const url = await issue();
    const stream = await listen(url);
    open.push(stream);
    begun[0]?.write(withId('own'));
    const id = await eventually(async () => lastId(stream.text()) || undefined);
    end(url);
    for (const headers of [{ 'last-event-id': id }, {}])
      expect((await send(url, 'GET', headers)).status).toBe(405);
  });

  test('lists only allowed tools on a resumed stream', async () => {
    const url = await issue('http', { tools: ['run'] });
    const id = await polled(url, [ask('tools/list', 7), toolCall('run', 8)]);
    end(url);
    const stream = await resume(url, id);
    const result = { tools: [{ name: 'run' }, { name: 'other' }] };
    begun[1]?.end(eventOf({ jsonrpc: '2.0', id: JSON.parse(listId(upstream)), result }));
    await stream.over;
    expect(stream.messages()).toEqual([{ jsonrpc: '2.0', id: 7, result: { tools: [{ name: 'run' }] } }]);
  });
});

/** A call under way, in which the server asks its client for something. */
async function asking(transport: Transport, method: string) {
  const url = await issue(transport);
  const question = {
    jsonrpc: '2.0',
    id: 'of the server',
    method,
    params: { _meta: { progressToken: 'p1' } },
  };
  let text = () => '';
  let write: (event: string) => void;
  let endpoint = at(stack, 1, url);
  if (transport === 'http') {
    const { body } = await new Promise<Awaited<ReturnType<typeof request>>>((resolve) => {
      void request(url, { method: 'POST', body: JSON.stringify(toolCall('run', 1)) }).then(resolve);
    });
    let got = '';
    body.on('data', (chunk: Buffer) => {
      got += chunk.toString();
    });
    text = () => got;
    write = (event) => begun[0]?.write(event);
  } else {
    const session = await openSession(stack, url);
    open.push(session.stream);
    ({ text } = session.stream);
    endpoint = session.endpoint;
    await post(endpoint, toolCall('run', 1));
    write = (event) => {
      for (const each of upstream.streams) each.write(event);
    };
  }
  write(eventOf(question));
  const asked = await eventually(async () => /^data: (\{.*"method".*)$/m.exec(text())?.[1]);
  const { id, params } = JSON.parse(asked) as { id: string; params: { _meta: { progressToken: string } } };
  end(url);
  return { url, endpoint, id, token: params._meta.progressToken, text, write };
}

describe.each(['http', 'sse'] as const)('over %s, after the URL has ended', (transport) => {
  test.each(['sampling/createMessage', 'elicitation/create', 'roots/list'])(
    'the answer to %s reaches the server, and the call finishes',
    async (method) => {
      const call = await asking(transport, method);
      const progress = { progressToken: call.token, progress: 1 };
      await post(call.endpoint, { jsonrpc: '2.0', method: 'notifications/progress', params: progress });
      await serverHas('"progressToken":"p1"');
      const reply = { jsonrpc: '2.0', id: call.id, result: { said: method } };
      expect(await post(call.endpoint, reply)).toMatchObject({ status: 202, text: 'Accepted' });
      await serverHas('"id":"of the server"');
      call.write(eventOf(answer(1)));
      await eventually(async () => call.text().includes(JSON.stringify(answer(1))));
    },
  );

  test('a cancellation reaches the server', async () => {
    const { endpoint } = await asking(transport, 'elicitation/create');
    await post(endpoint, { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } });
    await serverHas('notifications/cancelled');
  });

  test('no new request starts', async () => {
    const { url, endpoint, id } = await asking(transport, 'elicitation/create');
    const before = upstream.arrived.length;
    const reply = { jsonrpc: '2.0', id, result: {} };
    for (const message of [
      toolCall('other', 2),
      [reply, toolCall('other', 3)],
      ask('tools/list', 4),
      { jsonrpc: '2.0', method: 'do/it' },
      { jsonrpc: '2.0', method: 'notifications/initialized' },
      { jsonrpc: '2.0', method: 'notifications/cancelled', id: 5, params: { requestId: 1 } },
      { jsonrpc: '2.0', id: 'of the server', result: {} },
      { jsonrpc: '2.0', result: {} },
      'no JSON',
    ])
      await post(endpoint, message);
    await send(url, 'GET');
    await send(url, 'DELETE');
    expect(upstream.arrived.length).toBe(before);
    await revokeGrant(stack.redis, grantIn(tokenIn(url)));
    await eventually(async () => {
      await post(endpoint, reply);
      return upstream.arrived.length === before ? true : undefined;
    });
  });

  test('an answer is refused after UPSTREAM_TIMEOUT_SECONDS', async () => {
    const { url, endpoint, id } = await asking(transport, 'elicitation/create');
    const before = upstream.arrived.length;
    end(url, UPSTREAM_TIMEOUT_MS);
    await post(endpoint, { jsonrpc: '2.0', id, result: {} });
    expect(upstream.arrived.length).toBe(before);
  });
});

test('in the older transport, a stream ends when its last open call is cancelled', async () => {
  const url = await issue('sse');
  end(url, -5_000);
  const { stream, endpoint } = await openSession(stack, url);
  open.push(stream);
  await post(endpoint, toolCall('run', 1));
  await eventually(async () => Date.now() + aheadMs > grantIn(tokenIn(url)).expiresAtMs, 15_000);
  // Timers of the end have rung.
  await sleep(200);
  await post(endpoint, { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } });
  expect(await stream.over).toBe('ended');
  expect(stream.text()).not.toContain('"error"');
});

test('in the older transport, an answer is refused once no call is open on the stream', async () => {
  const { endpoint, id, write } = await asking('sse', 'elicitation/create');
  write(eventOf(answer(1)));
  open.at(-1)?.leave();
  const reply = { jsonrpc: '2.0', id, result: {} };
  await eventually(async () => ((await post(endpoint, reply)).status === 404 ? true : undefined));
});

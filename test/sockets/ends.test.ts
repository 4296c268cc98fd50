import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { CREATE, openSocket, statusOf } from './holder.ts';
import { eventsOf, type Json, type ResponsesProvider, startResponsesProvider } from './responses-provider.ts';

let provider: ResponsesProvider;
let stack: Stack;
let serve: ResponsesProvider['serve'];
beforeAll(async () => {
  provider = await startResponsesProvider();
  serve = provider.serve;
  stack = await startStack({ providers: { openai: { base_url: provider.url } } });
});
afterAll(async () => {
  await stack.close();
  await provider.close();
});
/** Ends the responses that wait. */
let pending: (() => void)[] = [];
/** Each response begins, and ends when the test says so. */
const holdBack: ResponsesProvider['serve'] = (event, { socket }) => {
  const [created, ...rest] = eventsOf(event);
  socket.send(JSON.stringify(created));
  pending.push(() => {
    for (const each of rest) socket.send(JSON.stringify(each));
  });
};
beforeEach(() => {
  provider.sockets.length = 0;
  provider.serve = serve;
  pending = [];
});

const ASK = { provider: 'openai', path: '/v1/responses', client_api_key: 'sk-real', sockets: true };
const issue = (more: object = {}) => stack.issue({ ...ASK, ...more });
const ask = (path: string, method = 'GET', body?: object) =>
  fetch(`${stack.issuerUrl}${path}`, {
    method,
    headers: { authorization: `Bearer ${stack.apiKey}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });
const rowsOf = async (grantId: string, count = 1) =>
  eventually(async () => {
    const { data } = (await (await ask(`/v1/calls?grant_id=${grantId}`)).json()) as { data: Json[] };
    return data.length >= count ? data : undefined;
  });
const code = (error: string) => ({ type: 'error', error: expect.objectContaining({ code: error }) });

describe('expiry', () => {
  test('closes an idle socket with 4401', async () => {
    const { url } = await issue({ expires_in: 4 });
    const holder = await openSocket(url);
    expect(await holder.closed).toEqual({ code: 4401, reason: 'token_expired' });
    expect(provider.sockets[0]?.socket.readyState).toBeGreaterThan(1);
  });

  test('lets a running turn end with a charge of its usage, and starts no new turn', async () => {
    const { url, grant_id } = await issue({ expires_in: 4, cost_limit: 100_000 });
    provider.serve = holdBack;
    const holder = await openSocket(url);
    holder.send(CREATE);
    await holder.next('response.created');
    await sleep(4_200);
    holder.send({ ...CREATE, stream_id: 'b' });
    expect(await holder.next('error')).toMatchObject({ ...code('token_expired'), stream_id: 'b' });
    expect(holder.socket.readyState).toBe(1);
    pending[0]?.();
    await holder.next('response.completed');
    expect(await holder.closed).toMatchObject({ code: 4401 });
    expect(await rowsOf(grant_id)).toMatchObject([{ outcome: 'passed', output_tokens: 5 }]);
    expect(provider.frames()).toHaveLength(1);
  });
});

describe('revocation and suspension', () => {
  test('cut a socket at once with 4403, and its turn is charged its hold', async () => {
    const { url, grant_id } = await issue({ cost_limit: 100_000 });
    provider.serve = holdBack;
    const holder = await openSocket(url);
    holder.send(CREATE);
    await holder.next('response.created');
    const { held } = await statusOf(url);
    expect((await ask(`/v1/grants/${grant_id}`, 'DELETE')).status).toBeLessThan(300);
    expect(await holder.next('error')).toMatchObject(code('grant_revoked'));
    expect(await holder.closed).toEqual({ code: 4403, reason: 'grant_revoked' });
    await eventually(async () => (provider.sockets[0]?.socket.readyState ?? 0) > 1);
    const [row] = await rowsOf(grant_id);
    expect(row).toMatchObject({ outcome: 'cut', cost: held });
  });

  test('cut an idle socket, and refuse its handshake', async () => {
    const { url, grant_id } = await issue();
    const holder = await openSocket(url);
    await ask(`/v1/grants/${grant_id}`, 'DELETE');
    expect(await holder.closed).toMatchObject({ code: 4403 });
    await expect(openSocket(url)).rejects.toMatchObject({ status: 403 });
  });
});

describe('an upstream', () => {
  test('that refuses a turn with an error event causes no charge', async () => {
    const { url } = await issue({ cost_limit: 100_000 });
    provider.serve = (_event, { socket }) =>
      socket.send(
        JSON.stringify({
          type: 'error',
          status: 400,
          error: { type: 'invalid_request_error', code: 'previous_response_not_found', message: 'No.' },
        }),
      );
    const holder = await openSocket(url);
    expect(await holder.turn()).toMatchObject({ error: { code: 'previous_response_not_found' } });
    expect(await statusOf(url)).toMatchObject({ used: 1, spent: 0, held: 0 });
    provider.serve = serve;
    expect(await holder.turn()).toMatchObject({ type: 'response.completed' });
    holder.socket.close();
  });

  test('that disconnects during a turn: the hold is charged, and the holder is notified', async () => {
    const { url, grant_id } = await issue({ cost_limit: 100_000 });
    provider.serve = (event, { socket }) => {
      socket.send(JSON.stringify(eventsOf(event)[0]), () => setTimeout(() => socket.terminate(), 300));
    };
    const holder = await openSocket(url);
    holder.send(CREATE);
    await holder.next('response.created');
    const { held } = await statusOf(url);
    expect(held).toBeGreaterThan(0);
    expect(await holder.next('error')).toMatchObject(code('upstream_unreachable'));
    expect(await holder.closed).toMatchObject({ code: 1011 });
    expect(await statusOf(url)).toMatchObject({ spent: held, held: 0 });
    expect(await rowsOf(grant_id)).toMatchObject([{ failure: 'answer_broken', cost: held }]);
  });

  test('closes a socket with its own code, and a reason without the key', async () => {
    const { url } = await issue({ client_api_key: 'sk-real-secret-key' });
    const holder = await openSocket(url);
    provider.sockets[0]?.socket.close(4000, 'no sk-real-secret-key');
    expect(await holder.closed).toEqual({ code: 4000, reason: `no ${'*'.repeat(18)}` });
  });

  test('that sends an error during a response: the hold is charged and the socket ends', async () => {
    const { url } = await issue({ cost_limit: 100_000 });
    provider.serve = (event, { socket }) => {
      socket.send(JSON.stringify(eventsOf(event)[0]));
      setTimeout(
        () => socket.send(JSON.stringify({ type: 'error', status: 400, error: { message: 'x' } })),
        300,
      );
    };
    const holder = await openSocket(url);
    holder.send(CREATE);
    await holder.next('response.created');
    const { held } = await statusOf(url);
    await holder.next('error');
    expect(await holder.closed).toMatchObject({ code: 1011 });
    expect(await statusOf(url)).toMatchObject({ spent: held, held: 0 });
  });

  test('that sends no usage at the end of a response: the hold is charged', async () => {
    const { url } = await issue({ cost_limit: 100_000 });
    let held = 0;
    provider.serve = async (event, { socket }) => {
      held = (await statusOf(url)).held;
      const [created, , last] = eventsOf(event) as unknown as [Json, Json, { response: Json }];
      socket.send(JSON.stringify(created));
      socket.send(JSON.stringify({ ...last, response: { ...last.response, usage: null } }));
    };
    const holder = await openSocket(url);
    await holder.turn();
    expect(await statusOf(url)).toMatchObject({ spent: held, held: 0 });
    holder.socket.close();
  });
});

describe('a holder who disconnects', () => {
  test('pays what the response has used, and the gateway waits for its usage', async () => {
    const { url, grant_id } = await issue({ cost_limit: 100_000 });
    provider.serve = holdBack;
    const holder = await openSocket(url);
    holder.send(CREATE);
    await holder.next('response.created');
    holder.socket.terminate();
    await sleep(300);
    expect(provider.sockets[0]?.socket.readyState).toBe(1);
    pending[0]?.();
    expect(await rowsOf(grant_id)).toMatchObject([{ failure: 'holder_left', output_tokens: 5 }]);
    expect((await statusOf(url)).held).toBe(0);
    await eventually(async () => (provider.sockets[0]?.socket.readyState ?? 0) > 1);
  });

  test('without a running turn ends the upstream socket', async () => {
    const holder = await openSocket((await issue()).url);
    holder.socket.close(1000);
    await eventually(async () => (provider.sockets[0]?.socket.readyState ?? 0) > 1);
  });
});

describe('a stopping gateway', () => {
  const atOther = async (graceMs: number) => {
    const { url } = await issue({ cost_limit: 100_000 });
    const before = stack.gateways.length;
    const other = await stack.addGateway();
    const gateway = stack.gateways[before];
    const socketUrl = url.replace(stack.gatewayUrls[0] ?? '', other);
    return { url, socketUrl, stop: () => gateway?.close({ drainMs: 0, graceMs }) };
  };

  test('closes idle sockets with 1001, and others after their turn', async () => {
    const { url, socketUrl, stop } = await atOther(10_000);
    const idle = await openSocket(socketUrl);
    provider.serve = holdBack;
    const busy = await openSocket(socketUrl);
    busy.send(CREATE);
    await busy.next('response.created');
    const stopped = stop();
    expect(await idle.closed).toMatchObject({ code: 1001 });
    busy.send({ ...CREATE, stream_id: 'b' });
    expect(await busy.next('error')).toMatchObject(code('overloaded'));
    pending[0]?.();
    await busy.next('response.completed');
    expect(await busy.closed).toMatchObject({ code: 1001 });
    await stopped;
    expect(await statusOf(url)).toMatchObject({ used: 1, held: 0 });
  });

  test('cuts a turn that exceeds the grace period, and charges its hold', async () => {
    const { url, socketUrl, stop } = await atOther(500);
    provider.serve = holdBack;
    const busy = await openSocket(socketUrl);
    busy.send(CREATE);
    await busy.next('response.created');
    const { held } = await statusOf(url);
    const stopped = stop();
    expect(await busy.next('error')).toMatchObject(code('overloaded'));
    expect(await busy.closed).toMatchObject({ code: 1001 });
    await stopped;
    expect(await statusOf(url)).toMatchObject({ spent: held, held: 0 });
  });
});

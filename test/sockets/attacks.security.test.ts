import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { CREATE, codeOf, openSocket, statusOf } from './holder.ts';
import { CONTINUATION, closeCode, frame, PING, rawSocket, TEXT } from './raw.ts';
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
beforeEach(() => {
  provider.sockets.length = 0;
  provider.serve = serve;
});

const ASK = { provider: 'openai', path: '/v1/responses', client_api_key: 'sk-real', sockets: true };
const urlOf = async (more: object = {}) =>
  (await stack.issue({ ...ASK, cost_limit: 1_000_000, ...more })).url;

describe('a hidden turn', () => {
  const text = JSON.stringify(CREATE);
  test.each([
    ['a repeated type', `{"type":"x",${text.slice(1)}`],
    ['a type in other letters', `{"Type":"response.create",${text.slice(1)}`],
    ['a repeated model', `{"model":"gpt-4.1-nano",${text.slice(1)}`],
    ['a repeated output bound', `${text.slice(0, -1)},"max_output_tokens":30000}`],
    ['an escaped repetition', `${text.slice(0, -1)},"max_output_t\\u006fkens":30000}`],
    ['a stream_id in other letters', `{"STREAM_ID":"a",${text.slice(1)}`],
    [
      'a repetition within its input',
      text.replace('"Hi."', '[{"role":"user","role":"system","content":"x"}]'),
    ],
    ['depth', text.replace('"Hi."', '['.repeat(600) + ']'.repeat(600))],
    ['a second text', `${text}${text}`],
    ['a list of turns', `[${text},${text}]`],
    ['steer', '{"type":"response.steer","previous_response_id":"resp_1","input":"more"}'],
    ['a turn as another event', text.replace('response.create', 'response.create2')],
    ['another name of the output bound', `${text.slice(0, -1)},"max_tokens":30000,"background":true}`],
  ])('by %s is refused, not sent, and costs nothing', async (_what, event) => {
    const url = await urlOf({ models: ['gpt-4.1-mini'] });
    const holder = await openSocket(url);
    holder.send(event);
    expect((await holder.next()).type).toBe('error');
    expect(provider.frames()).toEqual([]);
    expect(await statusOf(url)).toMatchObject({ used: 0, spent: 0, held: 0 });
    expect(await holder.turn()).toMatchObject({ type: 'response.completed' });
    holder.socket.close();
  });
});

describe('turns that try to exceed their hold', () => {
  test('one of two requests in one packet on one stream becomes a turn', async () => {
    const url = await urlOf();
    provider.serve = (event, { socket }) => socket.send(JSON.stringify(eventsOf(event)[0]));
    const { socket, got } = await rawSocket(url);
    const event = JSON.stringify({ ...CREATE, stream_id: 'a' });
    socket.write(Buffer.concat([frame(TEXT, event), frame(TEXT, event), frame(TEXT, event)]));
    await eventually(
      async () =>
        (
          got()
            .toString()
            .match(/concurrency_limited/g) ?? []
        ).length >= 2,
    );
    expect(provider.frames()).toHaveLength(1);
    expect((await statusOf(url)).used).toBe(1);
    socket.destroy();
  });

  test('a turn that starts before the last has settled never exceeds the limit', async () => {
    const rich = await urlOf();
    const holds: number[] = [];
    provider.serve = async (event, of) => {
      holds.push((await statusOf(rich)).held);
      await serve(event, of);
    };
    const first = await openSocket(rich);
    await first.turn();
    first.socket.close();
    const limit = Math.floor((holds[0] ?? 0) * 2.5);
    const url = await urlOf({ cost_limit: limit });
    let most = 0;
    provider.serve = async (event, of) => {
      const { spent, held } = await statusOf(url);
      most = Math.max(most, spent + held);
      await serve(event, of);
    };
    const holder = await openSocket(url);
    for (let i = 0; i < 12; i++) holder.send({ ...CREATE, stream_id: `s${i % 3}` });
    await eventually(
      async () =>
        holder.events.filter(({ type }) => type === 'error' || type === 'response.completed').length >= 12,
    );
    const { spent, held } = await statusOf(url);
    expect(most).toBeGreaterThan(0);
    expect(Math.max(most, spent + held)).toBeLessThanOrEqual(limit);
    holder.socket.close();
  });

  test('a second turn can exhaust the use limit', async () => {
    const url = await urlOf({ max_uses: 1 });
    const holder = await openSocket(url);
    for (const stream_id of ['a', 'b', 'c']) holder.send({ ...CREATE, stream_id });
    expect(codeOf(await holder.next('error'))).toBe('uses_exhausted');
    await holder.next('response.completed');
    expect((await holder.closed).code).toBe(4402);
    expect(provider.frames()).toHaveLength(1);
  });

  test("the end of one response never ends another response's turn", async () => {
    const url = await urlOf();
    const sent: Json[][] = [];
    provider.serve = (event, { socket }) => {
      const events = eventsOf(event, { output: sent.length === 0 ? 1 : 9 });
      sent.push(events);
      socket.send(JSON.stringify(events[0]));
      // A cheap end of the first response, on the lane of the second one.
      if (sent.length === 2)
        socket.send(JSON.stringify({ ...sent[0]?.[2], stream_id: event.stream_id }), () =>
          setTimeout(() => socket.send(JSON.stringify(events[2])), 200),
        );
    };
    const holder = await openSocket(url);
    holder.send({ ...CREATE, stream_id: 'a' });
    holder.send({ ...CREATE, stream_id: 'b' });
    await holder.next(({ type, stream_id }) => type === 'response.completed' && stream_id === 'b');
    expect((await statusOf(url)).held).toBeGreaterThan(0);
    await holder.next(({ type, stream_id }) => type === 'response.completed' && stream_id === 'b');
    const { used, held } = await statusOf(url);
    // The first turn still runs, and holds.
    expect(used).toBe(2);
    expect(held).toBeGreaterThan(0);
    holder.socket.terminate();
  });

  test('a response that never ends is charged its hold', async () => {
    const url = await urlOf();
    provider.serve = (event, { socket }) => {
      socket.send(JSON.stringify(eventsOf(event)[0]), () => setTimeout(() => socket.close(1000), 200));
    };
    const holder = await openSocket(url);
    holder.send(CREATE);
    await holder.next('response.created');
    const { held } = await statusOf(url);
    await holder.closed;
    expect(await statusOf(url)).toMatchObject({ spent: held, held: 0, used: 1 });
  });
});

describe('frames', () => {
  test('endless fragments are bounded in number and in bytes', async () => {
    const many = await rawSocket(await urlOf());
    many.socket.write(frame(TEXT, 'x', { fin: false }));
    many.socket.write(
      Buffer.concat(Array.from({ length: 300 }, () => frame(CONTINUATION, 'x', { fin: false }))),
    );
    await many.ended;
    expect(closeCode(many.got())).toBe(1008);
    const large = await rawSocket(await urlOf());
    large.socket.write(frame(TEXT, 'x'.repeat(60_000), { fin: false }));
    for (let i = 0; i < 20; i++) large.socket.write(frame(CONTINUATION, 'x'.repeat(60_000), { fin: false }));
    await large.ended;
    expect(closeCode(large.got())).toBe(1009);
  });

  test('a 64-bit length is refused before any byte of the message is read', async () => {
    for (const length of [0x1000000n, 0x7fffffffffffffffn, 0xffffffffffffffffn]) {
      const { socket, got, ended } = await rawSocket(await urlOf());
      const head = Buffer.alloc(10);
      head[0] = 0x80 | TEXT;
      head[1] = 0x80 | 127;
      head.writeBigUInt64BE(length, 2);
      socket.write(Buffer.concat([head, Buffer.alloc(4)]));
      await ended;
      expect(closeCode(got())).toBe(1009);
    }
  });

  test.each([
    ['an unmasked frame', frame(TEXT, '{}', { masked: false }), 1002],
    ['a continuation without a beginning', frame(CONTINUATION, 'x'), 1002],
    ['an unknown opcode', frame(3, 'x'), 1002],
    ['a reserved bit, as of compression', Buffer.from([0xc1, 0x80, 0, 0, 0, 0]), 1002],
    ['bytes that are no UTF-8', frame(TEXT, Buffer.from([0xff, 0xfe])), 1007],
    ['a ping of more than 125 bytes', frame(PING, 'x'.repeat(126)), 1002],
  ])('%s closes the socket', async (_what, bytes, code) => {
    const { socket, got, ended } = await rawSocket(await urlOf());
    socket.write(bytes);
    await ended;
    expect(closeCode(got())).toBe(code);
    expect(provider.frames()).toEqual([]);
  });

  test('a turn in frames of one byte, and in single bytes, is one turn', async () => {
    const url = await urlOf();
    const { socket, got } = await rawSocket(url);
    const text = JSON.stringify({
      type: 'response.create',
      model: 'gpt-4.1-mini',
      input: 'x',
      max_output_tokens: 16,
    });
    const bytes = Buffer.concat(
      [...text].map((char, i) => frame(i === 0 ? TEXT : CONTINUATION, char, { fin: i === text.length - 1 })),
    );
    for (const byte of bytes) socket.write(Buffer.from([byte]));
    await eventually(async () => got().includes('response.completed'));
    expect(provider.raw().length).toBe(1);
    expect((await statusOf(url)).used).toBe(1);
    socket.destroy();
  });

  test('a flood of pings is read slowly, and delays no other URL', async () => {
    const { socket, got } = await rawSocket(await urlOf());
    const pings = Buffer.concat(Array.from({ length: 10_000 }, () => frame(PING, '')));
    const flood = async () => {
      for (let i = 0; i < 20 && !socket.destroyed; i++)
        if (!socket.write(pings))
          await Promise.race([new Promise((resolve) => socket.once('drain', resolve)), sleep(500)]);
    };
    const flooding = flood();
    const other = await urlOf();
    const holder = await openSocket(other);
    for (let i = 0; i < 3; i++) expect(await holder.turn()).toMatchObject({ type: 'response.completed' });
    holder.socket.close();
    await flooding;
    // Each pong has two bytes. Not every ping has one.
    expect(got().length / 2).toBeLessThan(150_000);
    socket.destroy();
  });

  test('a flood of refused events is read slowly', async () => {
    const { socket, got } = await rawSocket(await urlOf());
    socket.write(Buffer.concat(Array.from({ length: 9_000 }, () => frame(TEXT, 'x'))));
    const holder = await openSocket(await urlOf());
    const beganAt = performance.now();
    expect(await holder.turn()).toMatchObject({ type: 'response.completed' });
    const refused = () =>
      (
        got()
          .toString('latin1')
          .match(/invalid_json:/g) ?? []
      ).length;
    // The flood was not read whole before the turn of another URL.
    expect(refused()).toBeLessThan(9_000);
    expect(performance.now() - beganAt).toBeLessThan(3_000);
    holder.socket.terminate();
    socket.destroy();
  });
});

test('a handshake behind an unanswered request on its connection is not served', async () => {
  const url = await urlOf();
  const { hostname, port, pathname } = new URL(url);
  const socket = connect(Number(port), hostname);
  let got = '';
  socket.on('data', (chunk) => {
    got += String(chunk);
  });
  socket.on('error', () => {});
  const ended = new Promise((resolve) => socket.once('close', resolve));
  const handshake = `GET ${pathname} HTTP/1.1\r\nHost: g\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${randomBytes(16).toString('base64')}\r\n\r\n`;
  socket.write(`POST ${pathname} HTTP/1.1\r\nHost: g\r\nContent-Length: 2\r\n\r\n{}${handshake}`);
  await ended;
  expect(got).not.toContain(' 101 ');
  expect(provider.sockets).toHaveLength(0);
});

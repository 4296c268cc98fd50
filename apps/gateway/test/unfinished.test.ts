import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { WebSocket } from 'ws';
import type { Reservation } from '../src/share/body-memory.ts';
import { acceptHolder, watchExcess } from '../src/socket/framing.ts';
import { Unfinished } from '../src/socket/unfinished.ts';

const server = createServer();
let holder: WebSocket;
let client: Socket;
let reserved = 0;
let most = Number.POSITIVE_INFINITY;
let messages: number[];
const full = vi.fn();
const memory: Reservation = {
  maxBodyBytes: 0,
  belongsTo: () => {},
  reserve: (bytes) => {
    if (reserved + bytes > most) return false;
    reserved += bytes;
    return true;
  },
  release: () => {
    reserved = 0;
  },
};

beforeEach(async () => {
  [reserved, most, messages] = [0, Number.POSITIVE_INFINITY, []];
  full.mockClear();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const accepted = once(server, 'upgrade').then(([incoming, socket, head]) => {
    holder = acceptHolder(
      { incoming, socket, head, headers: [], protocol: undefined },
      1024 * 1024,
    ) as WebSocket;
    const unfinished = new Unfinished(holder, { newReservation: () => memory }, 'grant', full);
    holder.on('message', (data: Buffer) => {
      unfinished.whole();
      messages.push(data.length);
    });
    holder.once('close', () => unfinished.release());
  });
  client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  client.on('error', () => {});
  client.write(
    'GET / HTTP/1.1\r\nHost: g\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n',
  );
  await accepted;
});
afterEach(async () => {
  client.destroy();
  holder.terminate();
  await new Promise((resolve) => server.close(resolve));
});

/** A frame of text, with a mask of zeros. */
function frame(length: number, opcode = 1, fin = true): Buffer {
  const head = Buffer.from([(fin ? 0x80 : 0) | opcode, 0x80 | 126, length >> 8, length & 0xff, 0, 0, 0, 0]);
  return Buffer.concat([head, Buffer.alloc(length, 'x')]);
}
const send = (bytes: Buffer) => client.write(bytes);
const seen = (check: () => boolean) => vi.waitFor(() => expect(check()).toBe(true), 10_000);

test('an incomplete message has memory reserved, and the memory is freed once the message is complete', async () => {
  const bytes = frame(50_000);
  send(bytes.subarray(0, -1));
  await seen(() => reserved >= 50_000);
  send(bytes.subarray(-1));
  await seen(() => messages.length === 1);
  expect(reserved).toBe(0);
});

test('fragments and the pings between them are reserved together, because they keep the same chunks alive', async () => {
  const ping = Buffer.from([0x89, 0x80, 0, 0, 0, 0]);
  send(Buffer.concat([frame(1_000, 1, false), ...Array.from({ length: 1_000 }, () => ping)]));
  await seen(() => reserved >= 7_000);
  send(frame(1_000, 0));
  await seen(() => messages.length === 1);
  expect(messages).toEqual([2_000]);
  expect(reserved).toBe(0);
});

test('memory is reserved for the beginning of a message that shares a chunk with another message', async () => {
  const bytes = frame(30_000);
  send(Buffer.concat([bytes, bytes.subarray(0, 100)]));
  await seen(() => messages.length === 1 && reserved > 0);
  send(bytes.subarray(100));
  await seen(() => messages.length === 2);
  expect(reserved).toBe(0);
});

test("without free memory the failure is reported once, and the socket's memory is freed when it closes", async () => {
  most = 20_000;
  const bytes = frame(60_000);
  send(bytes.subarray(0, 10_000));
  await seen(() => reserved >= 10_000);
  for (let i = 1; i < 5; i++) send(bytes.subarray(i * 10_000, i * 10_000 + 10_000));
  await seen(() => full.mock.calls.length > 0);
  expect(reserved).toBeLessThanOrEqual(most);
  expect(full).toHaveBeenCalledTimes(1);
  client.destroy();
  await seen(() => reserved === 0);
});

test.each([
  ['is too long', [frame(60_000, 1, false), ...Array.from({ length: 20 }, () => frame(60_000, 0, false))]],
  ['has a frame that cannot be read', [frame(60_000, 1, false), frame(10_000, 3)]],
])(
  'a message that %s reserves nothing after its refusal, however much more arrives',
  async (_what, frames) => {
    most = 1_100_000;
    let errors = 0;
    holder.on('error', () => errors++);
    for (const each of frames) send(each);
    await seen(() => errors === 1);
    const { _socket: bytes, _receiver: receiver } = holder as unknown as {
      readonly _socket: Socket;
      readonly _receiver: { readonly _buffers: readonly []; readonly _fragments: readonly [] };
    };
    const read = bytes.bytesRead;
    for (let i = 0; i < 100; i++) send(frame(60_000, 0, false));
    await seen(() => bytes.bytesRead > read + 2_000_000);
    expect([reserved, receiver._buffers.length, receiver._fragments.length]).toEqual([0, 0, 0]);
    expect(full).not.toHaveBeenCalled();
  },
);

test('a message in very small chunks is refused like one in very many frames, and the refusal names both causes', async () => {
  const tell = vi.fn();
  watchExcess(holder, tell);
  holder.on('error', () => {});
  const { _socket: bytes } = holder as unknown as { readonly _socket: Socket };
  for (const byte of frame(3_000)) bytes.emit('data', Buffer.of(byte));
  await seen(() => tell.mock.calls.length > 0);
  const message = expect.stringMatching(/more than 256 frames, or in more than 2048 very small pieces/);
  expect(tell.mock.calls).toEqual([[{ code: 1008, refusal: { code: 'invalid_request', message } }]]);
});

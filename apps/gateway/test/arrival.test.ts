import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { readWhole, type Whole } from '../src/http/body.ts';
import { arriveInTurns, bodyOf, refusalTurn } from '../src/share/arrival.ts';
import { bodyMemory } from '../src/share/body-memory.ts';
import { discardRest } from '../src/share/discard.ts';

const KIB = 1024;
const READ_BYTES = 64 * KIB;
const memory = bodyMemory(64 * KIB * KIB, 16 * KIB * KIB);
let handle: (request: IncomingMessage) => void;
const server = createServer((request, response) => {
  request.once('end', () => response.end('whole'));
  handle(request);
});
const sockets: Socket[] = [];
beforeAll(() => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)));
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
afterEach(() => {
  vi.useRealTimers();
  for (const socket of sockets.splice(0)) socket.destroy();
});

function write(bytes: string): Socket {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.on('error', () => {});
  sockets.push(socket);
  socket.write(bytes);
  return socket;
}

const arrives = () =>
  new Promise<IncomingMessage>((resolve) => {
    handle = resolve;
  });
const plain = (bytes: number) =>
  `POST / HTTP/1.1\r\nHost: g\r\nContent-Length: ${bytes}\r\n\r\n${'x'.repeat(bytes)}`;
const inBytes = (bytes: number) =>
  `POST / HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\nx\r\n'.repeat(bytes)}0\r\n\r\n`;

/** Turns of the event loop in which nothing more arrives. */
async function settled(read: () => number) {
  for (let still = 0, last = -1; still < 50; await nextTurn()) {
    still = read() === last ? still + 1 : 0;
    last = read();
  }
}

test('refused bodies are read no further until their shared turn, however many there are', async () => {
  // The pause after a turn is as long as the turn took, twice: a busy machine would make it longer than this test.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  const requests: IncomingMessage[] = [];
  handle = (request) => {
    requests.push(request);
    discardRest(request);
  };
  const read = () => requests.reduce((sum, { socket }) => sum + socket.bytesRead, 0);
  for (let i = 0; i < 20; i++) write(plain(512 * KIB));
  while (requests.length < 20) await nextTurn();
  await settled(read);
  const first = read();
  expect(first).toBeLessThanOrEqual(20 * 2 * READ_BYTES);
  for (let turn = 1; turn <= 100; turn++) {
    vi.advanceTimersByTime(1);
    await settled(read);
    expect(read()).toBeLessThanOrEqual(first + turn * READ_BYTES);
  }
  expect(read()).toBeGreaterThan(first);
  // The other tests do not wait for these turns.
  server.closeAllConnections();
  for (; vi.getTimerCount() > 0; await nextTurn()) vi.advanceTimersByTime(1_000);
});

test('a body in chunks of one byte is read a little at a time, and is complete at the end', async () => {
  const count = 100_000;
  const arrived = arrives();
  write(inBytes(count));
  const request = await arrived;
  arriveInTurns(request, 'url');
  const whole = readWhole(request, memory.newReservation());
  const steps: number[] = [];
  for (let before = request.socket.bytesRead; !request.complete; await nextTurn()) {
    steps.push(request.socket.bytesRead - before);
    before = request.socket.bytesRead;
  }
  // Node would read 2 MiB before any other connection has its turn.
  expect(steps.reduce((most, step) => Math.max(most, step))).toBeLessThanOrEqual(READ_BYTES);
  const { bytes } = (await whole) as Whole;
  expect(bytes.equals(Buffer.alloc(count, 'x'))).toBe(true);
});

test('a body stays with its sender until the gateway reads it', async () => {
  const arrived = arrives();
  write(plain(8 * KIB * KIB));
  const request = await arrived;
  arriveInTurns(request, 'url');
  await settled(() => request.socket.bytesRead);
  expect(request.socket.bytesRead).toBeLessThanOrEqual(2 * READ_BYTES);
  const { bytes } = (await readWhole(request, memory.newReservation())) as Whole;
  expect(bytes.equals(Buffer.alloc(8 * KIB * KIB, 'x'))).toBe(true);
});

test('a connection serves its next request after a body that was read, dropped or abandoned', async () => {
  const ways: ((request: IncomingMessage) => void)[] = [
    (request) => void readWhole(request, memory.newReservation()),
    (request) => discardRest(request),
    (request) => {
      bodyOf(request).destroy();
      discardRest(request);
    },
  ];
  for (const way of ways) {
    handle = (request) => {
      arriveInTurns(request, 'url');
      way(request);
    };
    const socket = write(plain(300 * KIB) + inBytes(20_000) + plain(10));
    let text = '';
    for await (const chunk of socket) {
      text += String(chunk);
      if (text.split('whole').length === 4) break;
    }
    expect(text.split('HTTP/1.1 200').length).toBe(4);
  }
});

test('a refusal waits for the turn of its URL, and for at most a second', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const arrived = arrives();
  write(inBytes(20_000));
  const request = await arrived;
  arriveInTurns(request, 'busy url');
  await settled(() => request.socket.bytesRead);
  let isTurn = false;
  const turn = refusalTurn(request)?.then(() => {
    isTurn = true;
  });
  await nextTurn();
  expect(isTurn).toBe(false);
  vi.advanceTimersByTime(1_000);
  await turn;
  // One that has its turn does not wait.
  const other = arrives();
  write(plain(10));
  expect(refusalTurn(await other)).toBeUndefined();
});

import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { readWhole } from '../src/http/body.ts';
import { bodyMemory } from '../src/http/body-memory.ts';

const TEN_MINUTES_MS = 600_000;
const { newReservation } = bodyMemory(1024);
const reads: { request: IncomingMessage; read: ReturnType<typeof readWhole> }[] = [];
const server = createServer((request) => {
  reads.push({ request, read: readWhole(request, newReservation()) });
});
let socket: Socket;

beforeAll(() => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)));
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(() => {
  vi.useRealTimers();
  socket.destroy();
});

/** Sends a head that announces so many bytes, and these. */
async function post(body: string, length = 10) {
  const arrived = new Promise((resolve) => server.once('request', resolve));
  socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.on('error', () => {});
  socket.write(`POST / HTTP/1.1\r\nHost: g\r\nContent-Length: ${length}\r\n\r\n${body}`);
  await arrived;
  const last = reads.at(-1);
  if (!last) throw new Error('no request came');
  return last;
}

test('a body that has not arrived within ten minutes is cut off, and not before', async () => {
  const { request, read } = await post('half');
  vi.advanceTimersByTime(TEN_MINUTES_MS - 1);
  expect(request.destroyed).toBe(false);
  vi.advanceTimersByTime(1);
  expect(await read).toMatchObject({ refusal: { code: 'invalid_request' } });
  expect(request.destroyed).toBe(true);
});

test('a body that has arrived is waited for no longer', async () => {
  const { request, read } = await post('ten bytes!');
  expect(await read).toEqual({ bytes: Buffer.from('ten bytes!') });
  expect(vi.getTimerCount()).toBe(0);
  expect(request.socket.destroyed).toBe(false);
});

test.each<[string, string, number]>([
  ['read', 'ten bytes!', 10],
  ['refused, while it is still being sent', 'x'.repeat(2_000), 4_000],
])(
  'nothing of a body that was %s stays with its request, which lives as long as the call',
  async (...given) => {
    const [, body, length] = given;
    const { request, read } = await post(body, length);
    const found = await read;
    expect('refusal' in found).toBe(length > body.length);
    for (const event of ['data', 'end', 'close']) expect(request.listenerCount(event), event).toBe(0);
    // The same for all, so that it can hold nothing of any.
    const other = await post('ten bytes!');
    await other.read;
    expect(request.listeners('error')).toEqual(other.request.listeners('error'));
    expect(request.socket.destroyed).toBe(false);
  },
);

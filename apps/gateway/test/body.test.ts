import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { readWhole } from '../src/http/body.ts';
import { bodyMemory } from '../src/share/body-memory.ts';

const PATIENCE_MS = 30_000;
const SLOWEST_BYTES_PER_SECOND = 16 * 1024;
const { newReservation } = bodyMemory(1024, 16 * 1024 * 1024);
const roomy = bodyMemory(16 * 1024 * 1024, 16 * 1024 * 1024);
const reads: { request: IncomingMessage; read: ReturnType<typeof readWhole> }[] = [];
const server = createServer((request) => {
  reads.push({
    request,
    read: readWhole(request, (request.url === '/roomy' ? roomy.newReservation : newReservation)()),
  });
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
async function post(body: string, length = 10, path = '/') {
  const arrived = new Promise((resolve) => server.once('request', resolve));
  socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.on('error', () => {});
  socket.write(`POST ${path} HTTP/1.1\r\nHost: g\r\nContent-Length: ${length}\r\n\r\n${body}`);
  await arrived;
  const last = reads.at(-1);
  if (!last) throw new Error('no request came');
  return last;
}

/** Waits until so many bytes have arrived. `vi.waitUntil` would move the timers on. */
async function readSoFar({ socket }: IncomingMessage, bytes: number) {
  while (socket.bytesRead < bytes) await nextTurn();
}

test('a body that stops arriving is refused after half a minute, and not before', async () => {
  const { request, read } = await post('half');
  vi.advanceTimersByTime(PATIENCE_MS - 1);
  expect(vi.getTimerCount()).toBe(1);
  vi.advanceTimersByTime(1_000);
  expect(await read).toMatchObject({ refusal: { code: 'invalid_request' } });
  expect(request.socket.destroyed).toBe(false);
});

test('a body has a second more for each 16 KiB that arrived', async () => {
  const arrived = 10 * SLOWEST_BYTES_PER_SECOND;
  const { request, read } = await post('x'.repeat(arrived), 20 * SLOWEST_BYTES_PER_SECOND, '/roomy');
  await readSoFar(request, arrived);
  // Bytes that arrived together with the head do not count.
  vi.advanceTimersByTime(PATIENCE_MS + 5_000);
  expect(vi.getTimerCount()).toBe(1);
  vi.advanceTimersByTime(6_000);
  expect(await read).toMatchObject({
    refusal: { message: 'The body arrived too slowly. Send the call again.' },
  });
});

test('the timeout stops once a body has arrived', async () => {
  const { request, read } = await post('ten bytes!');
  expect(await read).toEqual({ bytes: Buffer.from('ten bytes!') });
  expect(vi.getTimerCount()).toBe(0);
  expect(request.socket.destroyed).toBe(false);
});

/** Node 20 cannot free memory at once. */
test.skipIf(!('transfer' in ArrayBuffer.prototype))(
  'the chunks of a large body are freed once they are copied',
  async () => {
    const body = randomBytes(512 * 1024).toString('hex');
    const { request, read } = await post(body.slice(0, 1024), body.length, '/roomy');
    const chunks: Buffer[] = [];
    // Short chunks are copied together before there is a place for the body.
    request.on('data', (chunk: Buffer) => {
      if (chunk.length >= 1024) chunks.push(chunk);
    });
    socket.write(body.slice(1024));
    const whole = (await read) as { readonly bytes: Buffer };
    expect(whole.bytes.equals(Buffer.from(body))).toBe(true);
    expect(chunks.length).toBeGreaterThan(2);
    expect(chunks.filter(({ length }) => length > 0)).toEqual([]);
  },
);

test('a request keeps nothing of a body that was read, although it lives as long as the call', async () => {
  const { request, read } = await post('ten bytes!');
  expect(await read).toEqual({ bytes: Buffer.from('ten bytes!') });
  for (const event of ['data', 'end', 'close']) expect(request.listenerCount(event), event).toBe(0);
  // The same for all, so that it can hold nothing of any.
  const other = await post('ten bytes!');
  await other.read;
  expect(request.listeners('error')).toEqual(other.request.listeners('error'));
  expect(request.socket.destroyed).toBe(false);
});

test('a body in chunks of one byte takes little more memory than its bytes', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const count = 30_000;
  const arrived = new Promise((resolve) => server.once('request', resolve));
  socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.write('POST /roomy HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: chunked\r\n\r\n');
  await arrived;
  const last = reads.at(-1);
  collect();
  const before = process.memoryUsage().heapUsed;
  let came = 0;
  const all = new Promise<void>((resolve) =>
    last?.request.on('data', ({ length }: Buffer) => {
      came += length;
      if (came === count) resolve();
    }),
  );
  socket.write('1\r\nx\r\n'.repeat(count));
  await all;
  collect();
  // With a buffer for each of them it is 6 MB, and as much outside the heap.
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(3_000_000);
  socket.write('0\r\n\r\n');
  expect(await last?.read).toEqual({ bytes: Buffer.alloc(count, 'x') });
});

test('a large body of known size is the same wherever its pieces end, and takes memory only as it arrives', async () => {
  const body = randomBytes(1_000_000).toString('base64').slice(0, 1_000_000);
  const before = process.memoryUsage().arrayBuffers;
  const { request, read } = await post(body.slice(0, 100_000), body.length, '/roomy');
  await readSoFar(request, 100_000);
  // A stated size alone takes nothing: a tenth of the body is there.
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(body.length / 2);
  for (let at = 100_000, step = 1; at < body.length; at += step, step *= 3) {
    socket.write(body.slice(at, at + step));
    await nextTurn();
  }
  expect(await read).toEqual({ bytes: Buffer.from(body) });
});

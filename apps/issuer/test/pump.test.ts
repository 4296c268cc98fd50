import { once } from 'node:events';
import net, { type AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { type HttpBindings, serve } from '@hono/node-server';
import { Hono } from 'hono';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { type Patience, pump } from '../src/answers/pump.ts';

async function* endless() {
  for (;;) yield 'text';
}

/** An answer that nothing is read of. */
const stalled = () => new TransformStream<Uint8Array, Uint8Array>().writable;
const outgoing = { destroy: () => undefined as never };

/** Whether it has ended after so many ms. */
const endsWithin = (ms: number, pumped: Promise<void>) =>
  Promise.race([
    pumped.then(
      () => 'whole',
      () => 'broken off',
    ),
    new Promise((resolve) => setTimeout(resolve, ms, 'open')),
  ]);

test('a stalled download ends once others wait for its place, and not before', async () => {
  let isWanted = false;
  const patience = { wantedMs: 300, isWanted: () => isWanted };
  const pumped = pump({ writable: stalled(), outgoing }, endless(), patience);
  expect(await endsWithin(1_000, pumped)).toBe('open');
  isWanted = true;
  expect(await endsWithin(5_000, pumped)).toBe('broken off');
});

test('a download that is read continues, however many wait', async () => {
  let count = 0;
  async function* some() {
    // The time in which a text is made does not count.
    for (; count < 5; count++) {
      await sleep(300);
      yield 'text';
    }
  }
  const patience = { wantedMs: 300, isWanted: () => true };
  const pumped = pump({ writable: new WritableStream(), outgoing }, some(), patience);
  expect(await endsWithin(10_000, pumped)).toBe('whole');
});

describe('a download that fails', () => {
  let close = () => {};
  afterEach(() => {
    close();
    vi.restoreAllMocks();
  });

  async function* failing() {
    yield 'text';
    await sleep(100);
    throw new Error('select secret');
  }
  async function* failingAtOnce() {
    yield 'text';
    throw new Error('select secret');
  }
  async function* large() {
    for (;;) yield 'x'.repeat(1024 * 1024);
  }

  test.each([
    ['because a text fails', failing, {}, 'select secret'],
    ['because the second text fails at once', failingAtOnce, {}, 'select secret'],
    ['because its caller reads too slowly', large, { eachMs: 300 }, 'the caller reads too slowly'],
  ] as const)(
    '%s closes its connection, and prints nothing',
    async (_why, texts, patience: Patience, why) => {
      const printed = (['log', 'info', 'warn', 'error'] as const).map((name) => vi.spyOn(console, name));
      let broken: unknown;
      const app = new Hono<{ Bindings: HttpBindings }>().get('/', (c) => {
        const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
        pump({ writable, outgoing: c.env.outgoing }, texts(), patience).catch((error: unknown) => {
          broken = error;
        });
        return c.body(readable);
      });
      const server = serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 });
      close = () => server.close();
      await once(server, 'listening');
      const socket = net.connect((server.address() as AddressInfo).port, '127.0.0.1');
      socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
      let end = '';
      socket.on('data', (chunk: Buffer) => {
        end = (end + chunk.toString('latin1')).slice(-20);
      });
      socket.on('error', () => {});
      const closed = once(socket, 'close');
      if (texts === large) socket.pause();
      await vi.waitFor(() => expect(broken).toBeInstanceOf(Error), 10_000);
      socket.resume();
      await closed;
      expect(end).not.toMatch(/\r\n0\r\n\r\n$/);
      expect((broken as Error).message).toBe(why);
      for (const print of printed) expect(print).not.toHaveBeenCalled();
    },
  );
});

import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { bodyMemory } from '../src/share/body-memory.ts';
import { readQuota } from '../src/share/read-quota.ts';
import { Flow, type Taker } from '../src/socket/flow.ts';

const KB = 1024;
const MB = 1024 * KB;
const URL_OF_TEST = { id: 'g', sessionId: 's' };
/** The clock stands still, so a quota that is spent stays spent. */
const still = () => 0;
const OPTIONS = { autoPong: false, perMessageDeflate: false };

/** Both ends of a connection: the gateway's, and the peer's. */
async function connection() {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0, ...OPTIONS });
  await once(server, 'listening');
  const peer = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`, OPTIONS);
  const [[own]] = (await Promise.all([once(server, 'connection'), once(peer, 'open')])) as [[WebSocket], []];
  peer.on('error', () => {});
  onTestFinished(() => {
    for (const each of [own, peer]) each.terminate();
    server.close();
  });
  return { own, peer };
}

/** The bytes below a peer's frames. */
const bytesOf = (peer: WebSocket): Socket => (peer as unknown as { readonly _socket: Socket })._socket;
/** So many frames of a client without a payload or with one letter, with a mask of zeros. */
const pings = (count: number) => Buffer.from('898000000000'.repeat(count), 'hex');
const messages = (count: number) => Buffer.from('81810000000078'.repeat(count), 'hex');

/** A message of 60,000 bytes. */
const LONG = Buffer.concat([Buffer.from('81feea6000000000', 'hex'), Buffer.alloc(60_000, 'x')]);

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await sleep(10);
}

async function start(taker: Partial<Taker> = {}) {
  const [holder, upstream] = [await connection(), await connection()];
  const quota = readQuota(still);
  const taken: Buffer[] = [];
  const memory = bodyMemory(16 * MB, MB);
  const all: Taker = {
    take: async (frame) => void taken.push(frame),
    passes: () => false,
    hear: () => {},
    refuse: () => {},
    unread: () => {},
    ...taker,
  };
  const sides = { holder: holder.own, upstream: upstream.own };
  const flow = new Flow({ readQuota: quota, bodyMemory: memory }, URL_OF_TEST, sides, all);
  const spend = () => quota.take(URL_OF_TEST, 64 * MB + 1);
  return { flow, holder, upstream, quota, taken, spend };
}

describe('an upstream socket', () => {
  test('is read again after a full buffer: an event fills it by its frame header, and the client then reads that event', async () => {
    const { flow, holder, upstream } = await start();
    bytesOf(holder.peer).pause();
    const piece = Buffer.alloc(64 * KB);
    for (let quiet = 0; quiet < 20; quiet++) {
      for (; holder.own.bufferedAmount < 64 * KB; quiet = 0) flow.toHolder(piece);
      await sleep(10);
    }
    flow.toHolder(Buffer.alloc(256 * KB - holder.own.bufferedAmount - 1));
    expect(upstream.own.isPaused).toBe(true);
    bytesOf(holder.peer).resume();
    await vi.waitFor(() => expect(upstream.own.isPaused).toBe(false), { timeout: 20_000 });
  });

  test('that is paused while nothing waits is read again at the next tick', async () => {
    const { flow, upstream } = await start();
    upstream.own.pause();
    flow.beat();
    expect(upstream.own.isPaused).toBe(false);
  });

  test('also waits for the quota while the client is slow', async () => {
    const { flow, holder, upstream, spend } = await start();
    spend();
    flow.draw('holder', MB);
    expect([holder.own.isPaused, upstream.own.isPaused]).toEqual([true, false]);
    flow.draw('upstream', 1);
    expect(upstream.own.isPaused).toBe(true);
  });
});

describe('a flood of pings', () => {
  test('pauses its own socket, and adds no debt to the quota of its URL', async () => {
    const { holder, quota, spend } = await start();
    spend();
    let got = 0;
    holder.own.on('ping', () => got++);
    bytesOf(holder.peer).write(pings(10_000));
    await until(() => got > 100 && holder.own.isPaused);
    expect(quota.waitMs(URL_OF_TEST)).toBe(1);
  });

  test('is answered only a few times', async () => {
    const { holder, spend } = await start();
    spend();
    let [got, pongs] = [0, 0];
    holder.own.on('ping', () => got++);
    holder.peer.on('pong', () => pongs++);
    bytesOf(holder.peer).write(pings(10_000));
    await until(() => got >= 10_000);
    holder.own.close();
    await once(holder.peer, 'close');
    expect(pongs).toBeGreaterThan(0);
    expect(pongs).toBeLessThan(1_000);
  });
});

describe('a client', () => {
  test('that keeps sending after the gateway closed has its messages dropped unread', async () => {
    const { holder, quota, taken } = await start();
    let got = 0;
    holder.own.on('message', () => got++);
    // It does not answer the close.
    bytesOf(holder.peer).removeAllListeners('data').resume();
    holder.own.close(4402);
    bytesOf(holder.peer).write(messages(10));
    await until(() => got === 10);
    await turn();
    expect(taken).toEqual([]);
    // Their bytes draw on the quota.
    quota.take(URL_OF_TEST, 64 * MB - 100 * KB);
    bytesOf(holder.peer).write(LONG);
    await until(() => got === 11);
    expect(quota.waitMs(URL_OF_TEST)).toBeGreaterThan(0);
  });

  test('that left while the quota is used up leaves no timer', async () => {
    let take = () => {};
    const { flow, holder, upstream, spend } = await start({
      take: () => new Promise<void>((resolve) => (take = resolve)),
    });
    bytesOf(holder.peer).write(messages(2));
    await until(() => holder.own.isPaused);
    spend();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    take();
    while (vi.getTimerCount() === 0) await turn();
    for (const { own } of [holder, upstream]) {
      own.terminate();
      await once(own, 'close');
    }
    flow.drop();
    flow.stop();
    await turn();
    expect(vi.getTimerCount()).toBe(0);
  });
});

import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { promisify } from 'node:util';
import type { Worker } from 'node:worker_threads';
import { BUNDLED_KNOWLEDGE, BUNDLED_PRICES } from '@presign/providers';
import { afterEach, expect, test, vi } from 'vitest';
import { readQuota } from '../src/share/read-quota.ts';
import { startBodyWorkers } from '../src/workers/body-workers.ts';

const MIB = 1024 * 1024;
const BODY_BYTES = 16 * MIB;

afterEach(() => {
  vi.useRealTimers();
});

/** The heap that a thread of a process may use, in MiB. The process has Node's argument for a busy main thread. */
async function heapOfThread(begins: string): Promise<number> {
  const file = JSON.stringify(new URL('../src/workers/body-workers.ts', import.meta.url).href);
  const thread = `require('node:worker_threads').parentPort.postMessage(require('node:v8').getHeapStatistics().heap_size_limit)`;
  const code = `
    import { Worker } from 'node:worker_threads';
    import { limitHeapsByThread, workerHeap } from ${file};
    ${begins}
    new Worker(${JSON.stringify(thread)}, { eval: true, execArgv: [], resourceLimits: workerHeap(${BODY_BYTES}) })
      .once('message', (bytes) => console.log(bytes));`;
  const args = ['--max-semi-space-size=64', '--import', 'tsx', '--input-type=module', '-e', code];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: import.meta.dirname });
  return Number(stdout) / MIB;
}

test('heap flags of the main thread on the command line do not override the limits of a worker', async () => {
  const [own, replaced] = await Promise.all([heapOfThread('limitHeapsByThread();'), heapOfThread('')]);
  // 128 and 16 for each MiB of a body, and 24 for what is new.
  expect(own).toBeLessThanOrEqual(128 + 256 + 24);
  expect(replaced).toBeGreaterThan(own + 100);
});

test('a worker can collect the garbage of a large body immediately', async () => {
  const file = JSON.stringify(new URL('../src/workers/body-workers.ts', import.meta.url).href);
  const thread = `require('node:worker_threads').parentPort.postMessage(typeof gc)`;
  const code = `
    import { Worker } from 'node:worker_threads';
    import { limitHeapsByThread } from ${file};
    limitHeapsByThread();
    new Worker(${JSON.stringify(thread)}, { eval: true, execArgv: [] })
      .once('message', (type) => console.log(type, typeof gc));`;
  const args = ['--import', 'tsx', '--input-type=module', '-e', code];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: import.meta.dirname });
  expect(stdout.trim()).toBe('function undefined');
});

test('idle workers end, and the next large body starts new ones', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const prices = { current: () => BUNDLED_PRICES };
  const knowledge = { current: () => BUNDLED_KNOWLEDGE, providers: new Map() };
  const workers = startBodyWorkers(
    { prices, knowledge, providersFile: undefined, maxBodyBytes: BODY_BYTES },
    readQuota(Date.now),
  );
  const started: Worker[] = [];
  const note = (worker: Worker) => void started.push(worker);
  process.on('worker', note);
  const read = () =>
    workers.readMessages({ id: 'g', sessionId: 's' }, Buffer.from('{"jsonrpc":"2.0","method":"m"}'));
  const message = { messages: { all: [{ method: 'm' }] } };
  expect(await read()).toMatchObject(message);
  const ended = started.map((worker) => once(worker, 'exit'));
  expect(ended).toHaveLength(1);
  vi.advanceTimersByTime(30_000);
  await Promise.all(ended);
  expect(await read()).toMatchObject(message);
  expect(started).toHaveLength(2);
  process.off('worker', note);
  await workers.close();
});

test('a worker that exceeds its time is stopped, its body is refused, and another worker reads the next body', async () => {
  const prices = { current: () => BUNDLED_PRICES };
  const knowledge = { current: () => BUNDLED_KNOWLEDGE, providers: new Map() };
  const quota = readQuota(Date.now);
  const workers = startBodyWorkers(
    { prices, knowledge, providersFile: undefined, maxBodyBytes: BODY_BYTES },
    quota,
  );
  const owner = { id: 'g', sessionId: 's' };
  const body = (text: string) => Buffer.from(`[${text}{"jsonrpc":"2.0","method":"m"}]`);
  expect(await workers.readMessages(owner, body(''))).toMatchObject({ messages: { all: [{ method: 'm' }] } });
  const due = new AbortController();
  const timeout = vi.spyOn(AbortSignal, 'timeout').mockImplementationOnce(() => {
    setImmediate(() => due.abort());
    return due.signal;
  });
  const started = once(process, 'worker');
  const long = body('{"jsonrpc":"2.0","method":"n"},'.repeat(400_000));
  expect(await workers.readMessages(owner, long)).toEqual({
    refusal: expect.objectContaining({ code: 'body_too_large' }) as unknown,
  });
  expect(timeout).toHaveBeenCalledWith(30_000);
  timeout.mockRestore();
  expect(await workers.readMessages(owner, body(''))).toMatchObject({ messages: { all: [{ method: 'm' }] } });
  expect(await started).toHaveLength(1);
  await workers.close();
});

test('a body is charged for the time that a worker works on it, and not for the start of threads', async () => {
  const prices = { current: () => BUNDLED_PRICES };
  const knowledge = { current: () => BUNDLED_KNOWLEDGE, providers: new Map() };
  let paid = 0;
  const quota = {
    waitMs: () => 0,
    take: (_grant: unknown, work: number) => {
      paid += work;
    },
  };
  const workers = startBodyWorkers(
    { prices, knowledge, providersFile: undefined, maxBodyBytes: BODY_BYTES },
    quota,
  );
  const began = performance.now();
  const body = Buffer.from('{"jsonrpc":"2.0","method":"m"}');
  await Promise.all(['g', 'h'].map((id) => workers.readMessages({ id, sessionId: 's' }, body)));
  // 16 KiB for each millisecond.
  expect(paid / (16 * 1024)).toBeLessThan((performance.now() - began) / 2);
  await workers.close();
});

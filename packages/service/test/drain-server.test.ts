import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { drainServer } from '../src/start.ts';

const CALLS = 40;

/** Sends a request on each of some connections, counts those that are open, and posts the first line of every answer. */
const CLIENT = String.raw`
  const { connect } = require('node:net');
  const { parentPort, workerData } = require('node:worker_threads');
  const { port, calls, open } = workerData;
  for (let i = 0; i < calls; i++) {
    let got = '';
    const socket = connect(port, '127.0.0.1', () => {
      socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n', () => {
        Atomics.add(open, 0, 1);
        Atomics.notify(open, 0);
      });
    });
    socket.on('data', (bytes) => (got += bytes));
    socket.on('error', (error) => (got = error.code));
    socket.on('close', () => parentPort.postMessage(got.split('\r\n')[0]));
  }`;

// Each one takes time, and a connection that arrives in that time is reset.
test('a stopping server stops listening before it closes its first idle connection', async () => {
  const server = createServer((_request, response) => void response.end('ok'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const listening: boolean[] = [];
  const end = server.closeIdleConnections.bind(server);
  server.closeIdleConnections = () => {
    listening.push(server.listening);
    end();
  };
  await drainServer(server, 0, () => {});
  expect(new Set(listening)).toEqual(new Set([false]));
});

test('a stopping server answers every connection that waits to be accepted', async () => {
  const server = createServer((_request, response) => void response.end('ok'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const open = new Int32Array(new SharedArrayBuffer(4));
  const client = new Worker(CLIENT, { eval: true, workerData: { port, calls: CALLS, open } });
  const answers: string[] = [];
  const ended = new Promise<void>((resolve) => {
    client.on('message', (line: string) => {
      answers.push(line);
      if (answers.length === CALLS) resolve();
    });
  });
  await new Promise((resolve) => client.once('online', resolve));
  // The system opens connections while this thread stands still.
  for (let count = 0; count < CALLS; count = Atomics.load(open, 0))
    expect(Atomics.wait(open, 0, count, 60_000)).not.toBe('timed-out');

  await drainServer(server, 0, () => {});
  await ended;
  expect(answers).toEqual(Array.from({ length: CALLS }, () => 'HTTP/1.1 200 OK'));
  expect(server.listening).toBe(false);
  await client.terminate();
});

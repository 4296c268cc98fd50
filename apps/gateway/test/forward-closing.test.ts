import { createServer } from 'node:net';
import { guardedDispatcher } from '@presign/outbound';
import { expect, test } from 'vitest';
import { Cutter } from '../src/http/cut.ts';
import { forward } from '../src/http/forward.ts';
import { createHosts } from '../src/share/hosts.ts';
import { newTurns } from '../src/share/turns.ts';

/** The ways to frame an answer that ends its connection. */
const FRAMES = {
  'by its length': (body: string) => `Connection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  'by its length, on a connection that was to be kept': (body: string) =>
    `Content-Length: ${body.length}\r\n\r\n${body}`,
  'by the end of its connection': (body: string) => `Connection: close\r\n\r\n${body}`,
  'in chunks': (body: string) =>
    `Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
};

test.each(Object.entries(FRAMES))(
  'an answer framed as %s is complete if its server closes the connection while a slow client reads',
  async (_how, framed) => {
    for (const body of ['x', 'x'.repeat(200_000)]) {
      expect(await passed(framed(body))).toEqual([{ is: 'complete', status: 200 }, body.length]);
    }
  },
);

test.each(['Content-Length: 10\r\n\r\nx', 'Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n'])(
  'an answer that its server leaves incomplete is reported as broken, even while a slow client reads: %j',
  async (framed) => expect(await passed(framed)).toMatchObject([{ is: 'broken' }, 1]),
);

/** How an answer ended whose holder takes one piece each 20 ms, and how much of its body came. */
async function passed(framed: string) {
  const server = createServer((socket) => {
    socket.once('data', () => socket.end(`HTTP/1.1 200 OK\r\n${framed}`));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  const dispatcher = guardedDispatcher(true);
  let got = 0;
  const ended = await forward(
    { dispatcher, hosts: createHosts() },
    { origin: `http://127.0.0.1:${port}`, path: '/', method: 'GET', headers: [], body: null, host: '' },
    {
      passes: () => true,
      head: () => {},
      data: (chunk) => {
        got += chunk.length;
        return false;
      },
      whenClosed: () => {},
      whenDrained: (resume) => setTimeout(resume, 20),
    },
    { headersMs: 5_000, totalMs: 20_000, readsOn: () => false, turn: newTurns().of('url') },
    new Cutter(),
  );
  server.close();
  await dispatcher.destroy();
  return [ended, got];
}

import { createServer } from 'node:net';
import { guardedDispatcher } from '@presign/outbound';
import { expect, test } from 'vitest';
import { Cutter } from '../src/http/cut.ts';
import { forward } from '../src/http/forward.ts';
import { answerTurns } from '../src/http/turns.ts';

/** The ways to frame an answer that ends its connection. */
const FRAMES = {
  'by its length': (body: string) => `Content-Length: ${body.length}\r\n\r\n${body}`,
  'by the end of its connection': (body: string) => `\r\n${body}`,
  'in chunks': (body: string) =>
    `Transfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
};

test.each(Object.entries(FRAMES))(
  'an answer framed %s is whole, though its server closes while the holder is waited for',
  async (_how, framed) => {
    const body = 'x'.repeat(200_000);
    const server = createServer((socket) => {
      socket.once('data', () => socket.end(`HTTP/1.1 200 OK\r\nConnection: close\r\n${framed(body)}`));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    const port = typeof address === 'object' ? address?.port : 0;
    const dispatcher = guardedDispatcher(true);
    let got = 0;
    const ended = await forward(
      dispatcher,
      { origin: `http://127.0.0.1:${port}`, path: '/', method: 'GET', headers: [], body: null },
      {
        head: () => {},
        data: (chunk) => {
          got += chunk.length;
          return false;
        },
        whenClosed: () => {},
        whenDrained: (resume) => setTimeout(resume, 20),
      },
      { headersMs: 5_000, totalMs: 20_000, readsOn: () => false, turn: answerTurns().of('url') },
      new Cutter(),
    );
    expect([ended, got]).toEqual([{ is: 'complete', status: 200 }, body.length]);
    server.close();
    await dispatcher.destroy();
  },
);

import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, test } from 'vitest';
import { endWith, sendHead, whenDrained, writePart } from '../src/http/headers.ts';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

type Serve = (response: ServerResponse, path: string) => void;

async function serverOf(serve: Serve): Promise<number> {
  const server = createServer((request, response) => serve(response, request.url ?? ''));
  servers.push(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return (server.address() as AddressInfo).port;
}

/** All bytes of a connection that sends this and waits for its end. */
async function answerTo(serve: Serve, request: string): Promise<string> {
  const socket = connect(await serverOf(serve), '127.0.0.1').setEncoding('latin1');
  socket.write(request);
  return text(socket);
}

const bodyIn = (answer: string) => answer.slice(answer.indexOf('\r\n\r\n') + 4);
const asks = (first: string) => `${first}\r\nHost: a\r\nConnection: close\r\n\r\n`;
const GET = asks('GET / HTTP/1.1');

const BYTES = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
const LARGE = Buffer.alloc(20_000, 'x');

const inParts =
  (parts: readonly Buffer[], headers: string[] = []): Serve =>
  (response) => {
    response.writeHead(200, headers);
    sendHead(response);
    for (const part of parts) writePart(response, part);
    endWith(response, Buffer.alloc(0));
  };

const chunk = (bytes: Buffer) => `${bytes.length.toString(16)}\r\n${bytes.toString('latin1')}\r\n`;

describe('the parts of an answer', () => {
  test('are chunks of their own, whatever bytes and sizes they have', async () => {
    const parts = [Buffer.from('data: 1\n\n'), BYTES, Buffer.alloc(0), LARGE, Buffer.from('a')];
    const body = bodyIn(await answerTo(inParts(parts), GET));
    const full = parts.filter(({ length }) => length > 0);
    expect(body).toBe(`${full.map(chunk).join('')}0\r\n\r\n`);
  });

  test('are not chunks where the answer has a length', async () => {
    const parts = [BYTES, Buffer.from('end')];
    const body = bodyIn(await answerTo(inParts(parts, ['content-length', '259']), GET));
    expect(Buffer.from(body, 'latin1')).toEqual(Buffer.concat(parts));
  });

  test('are not chunks for a client of HTTP/1.0', async () => {
    const body = bodyIn(await answerTo(inParts([BYTES, LARGE]), asks('GET / HTTP/1.0')));
    expect(Buffer.from(body, 'latin1')).toEqual(Buffer.concat([BYTES, LARGE]));
  });

  test('are left out of the answer to HEAD', async () => {
    expect(bodyIn(await answerTo(inParts([BYTES]), asks('HEAD / HTTP/1.1')))).toBe('');
  });

  test('of a second request wait for the first answer', async () => {
    const waiting: ServerResponse[] = [];
    const serve: Serve = (response, path) => {
      response.writeHead(200);
      sendHead(response);
      writePart(response, Buffer.from(path));
      waiting.push(response);
      // The answer to the second request is complete before that to the first.
      if (waiting.length === 2) for (const each of waiting.reverse()) endWith(each, Buffer.from('.'));
    };
    const answers = await answerTo(
      serve,
      `GET /first HTTP/1.1\r\nHost: a\r\n\r\n${asks('GET /second HTTP/1.1')}`,
    );
    const [, first, second] = answers.split('HTTP/1.1 200 OK').map(bodyIn);
    expect(first).toBe('6\r\n/first\r\n1\r\n.\r\n0\r\n\r\n');
    expect(second).toBe('7\r\n/second\r\n1\r\n.\r\n0\r\n\r\n');
  });

  test('wait for a client that does not read, and go on when it does', async () => {
    let written = 0;
    let full = false;
    const serve: Serve = (response) => {
      const part = Buffer.alloc(8_000, 'y');
      const next = () => {
        while (written < 2_000) {
          written++;
          if (!writePart(response, part)) {
            full = true;
            return whenDrained(response, next);
          }
        }
        endWith(response, Buffer.alloc(0));
      };
      response.writeHead(200);
      sendHead(response);
      next();
    };
    const socket = connect(await serverOf(serve), '127.0.0.1').setEncoding('latin1');
    socket.pause().write(GET);
    await expect.poll(() => full).toBe(true);
    await expect
      .poll(async () => {
        const before = written;
        await new Promise((resolve) => setTimeout(resolve, 50));
        return written === before;
      })
      .toBe(true);
    expect(written).toBeLessThan(2_000);
    const body = bodyIn(await text(socket.resume()));
    expect(written).toBe(2_000);
    expect(body.length).toBe(2_000 * (8_000 + '1f40\r\n\r\n'.length) + '0\r\n\r\n'.length);
  });

  test('are not written to a client that has left', async () => {
    const left = await new Promise<boolean>((resolve) => {
      void serverOf((response) => {
        response.writeHead(200);
        sendHead(response);
        response.once('close', () => resolve(writePart(response, BYTES)));
      }).then((port) => {
        const socket = connect(port, '127.0.0.1');
        socket.write(GET);
        socket.once('data', () => socket.destroy());
      });
    });
    expect(left).toBe(false);
  });
});

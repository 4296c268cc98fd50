import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, test } from 'vitest';
import { breakOff } from '../src/http/cut.ts';
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

describe('the chunks of an answer', () => {
  test('are written as HTTP chunks, whatever bytes and sizes they have', async () => {
    const parts = [Buffer.from('data: 1\n\n'), BYTES, Buffer.alloc(0), LARGE, Buffer.from('a')];
    const body = bodyIn(await answerTo(inParts(parts), GET));
    const full = parts.filter(({ length }) => length > 0);
    expect(body).toBe(`${full.map(chunk).join('')}0\r\n\r\n`);
  });

  test('are written without chunked encoding if the answer has a length', async () => {
    const parts = [BYTES, Buffer.from('end')];
    const body = bodyIn(await answerTo(inParts(parts, ['content-length', '259']), GET));
    expect(Buffer.from(body, 'latin1')).toEqual(Buffer.concat(parts));
  });

  test('are written without chunked encoding to a client of HTTP/1.0', async () => {
    const body = bodyIn(await answerTo(inParts([BYTES, LARGE]), asks('GET / HTTP/1.0')));
    expect(Buffer.from(body, 'latin1')).toEqual(Buffer.concat([BYTES, LARGE]));
  });

  test('are omitted from the answer to HEAD', async () => {
    expect(bodyIn(await answerTo(inParts([BYTES]), asks('HEAD / HTTP/1.1')))).toBe('');
  });

  test('of a second request wait for the first answer', async () => {
    const waiting: ServerResponse[] = [];
    const serve: Serve = (response, path) => {
      response.writeHead(200);
      sendHead(response);
      writePart(response, Buffer.from(path));
      waiting.push(response);
      const [first, second] = waiting;
      if (!first || !second) return;
      writePart(second, Buffer.from('waits'));
      // Only when the first answer has ended has the second one the connection.
      first.once('close', () => {
        expect(second.socket).not.toBeNull();
        writePart(second, Buffer.from('goes'));
        endWith(second, Buffer.from('.'));
      });
      endWith(first, Buffer.from('.'));
    };
    const requests = `GET /first HTTP/1.1\r\nHost: a\r\n\r\n${asks('GET /second HTTP/1.1')}`;
    const answers = await answerTo(serve, requests);
    const [, first, second] = answers.split('HTTP/1.1 200 OK').map(bodyIn);
    const chunks = (...parts: string[]) =>
      `${parts.map((each) => chunk(Buffer.from(each))).join('')}0\r\n\r\n`;
    expect(first).toBe(chunks('/first', '.'));
    expect(second).toBe(chunks('/second', 'waits', 'goes', '.'));
  });

  test('close the connection if the second answer breaks off while it waits for the first', async () => {
    const serve: Serve = (response, path) => {
      response.writeHead(200);
      sendHead(response);
      writePart(response, Buffer.from(path));
      if (path === '/broken') breakOff(response);
      else setTimeout(() => endWith(response, Buffer.from('.')), 100);
    };
    const [first, broken] = ['/first', '/broken'].map((path) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
    const answers = await answerTo(serve, `${first}${broken}${asks('GET /third HTTP/1.1')}`);
    expect(answers).toContain('1\r\n.\r\n0\r\n\r\n');
    expect(answers).not.toContain('/third');
    expect(answers.match(/0\r\n\r\n/g)).toHaveLength(1);
  });

  test('are refused after the end of the answer', async () => {
    const serve: Serve = (response) => {
      response.on('error', () => {});
      inParts([BYTES])(response, '');
      writePart(response, Buffer.from('late'));
    };
    expect(bodyIn(await answerTo(serve, GET))).toBe(`${chunk(BYTES)}0\r\n\r\n`);
  });

  // Node frames the larger ones.
  test.each([8_000, 20_000])(
    'of %i bytes wait for a client that does not read, and continue when it reads',
    async (size) => {
      const parts = Array.from({ length: 20_000_000 / size }, () => Buffer.alloc(size, 'y'));
      let written = 0;
      let waits = 0;
      const serve: Serve = (response) => {
        const next = () => {
          for (const part of parts.slice(written)) {
            written++;
            if (writePart(response, part)) continue;
            waits++;
            return whenDrained(response, next);
          }
          endWith(response, Buffer.alloc(0));
        };
        response.writeHead(200);
        sendHead(response);
        next();
      };
      const socket = connect(await serverOf(serve), '127.0.0.1').setEncoding('latin1');
      socket.pause().write(GET);
      await expect.poll(() => waits, { timeout: 60_000 }).toBeGreaterThan(0);
      expect(written).toBeLessThan(parts.length);
      const body = bodyIn(await text(socket.resume()));
      expect(written).toBe(parts.length);
      expect(body === `${parts.map(chunk).join('')}0\r\n\r\n`).toBe(true);
    },
  );

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

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { Agent, type Dispatcher } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newCertificate } from '../harness/tls.ts';

// Sockets to upstreams read into one buffer (ADR 8). No answer may get another's bytes by it.

const ANSWERS = 60;
const PIECES = 40;

/** Sizes from a byte to more than one read takes, 64 KiB. */
const sizeOf = (answer: number, piece: number) =>
  1 + ((answer * 7_919 + piece * 104_729) % 8_009) * (piece % 10 === 0 ? 12 : 1);
/** Every answer has letters of its own. */
const pieceOf = (answer: number, piece: number) => Buffer.alloc(sizeOf(answer, piece), `${answer}.${piece};`);
const answerOf = (answer: number) =>
  Buffer.concat(Array.from({ length: PIECES }, (_, piece) => pieceOf(answer, piece)));

/** Sends the answer that the path names, with a pause after every third piece. */
async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const answer = Number(request.url?.slice(1));
  if (answer % 2 === 0) response.setHeader('content-length', answerOf(answer).length);
  for (let piece = 0; piece < PIECES; piece++) {
    response.write(pieceOf(answer, piece));
    if (piece % 3 === 0) await nextTurn();
  }
  response.end();
}

/** The chunks of an answer, kept until all answers have come. Every fifth reader is slow. */
async function read(agent: Dispatcher, origin: string, answer: number): Promise<Buffer[]> {
  const { body } = await agent.request({ origin, path: `/${answer}`, method: 'GET' });
  const chunks: Buffer[] = [];
  for await (const chunk of body) {
    chunks.push(chunk);
    if (answer % 5 === 0) await sleep(1);
  }
  return chunks;
}

const upstreams: Record<string, { readonly server: Server; readonly origin: string }> = {};
let agent: Agent;

beforeAll(async () => {
  const pem = await newCertificate('localhost');
  const servers = { http: createServer(serve), https: createTlsServer(pem, serve) };
  for (const [scheme, server] of Object.entries(servers)) {
    // The second round uses the connections of the first, however long a busy machine takes to compare its bytes.
    server.keepAliveTimeout = 60_000;
    await new Promise<void>((resolve) => server.listen(0, resolve));
    const { port } = server.address() as AddressInfo;
    upstreams[scheme] = { server, origin: `${scheme}://localhost:${port}` };
  }
  agent = new Agent({ pipelining: 1, connect: { ca: pem.cert } });
});

afterAll(async () => {
  await agent.destroy();
  for (const { server } of Object.values(upstreams)) server.close();
});

describe.each(['http', 'https'])('answers that arrive simultaneously over %s', (scheme) => {
  test('keep their own bytes, even when connections are reused', async () => {
    const { origin } = upstreams[scheme] ?? { origin: '' };
    for (let round = 0; round < 2; round++) {
      const all = await Promise.all(
        Array.from({ length: ANSWERS }, (_, answer) => read(agent, origin, answer)),
      );
      const wrong = all.flatMap((chunks, answer) =>
        Buffer.concat(chunks).equals(answerOf(answer)) ? [] : [answer],
      );
      expect(wrong).toEqual([]);
    }
  });
});

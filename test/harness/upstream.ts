import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One request as a provider saw it. */
export type Seen = {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
};

export type Upstream = {
  readonly url: string;
  readonly seen: Seen[];
  readonly close: () => Promise<void>;
};

export type Answer = (seen: Seen, response: ServerResponse, request: IncomingMessage) => void | Promise<void>;

const OK: Answer = (_seen, response) => {
  response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}');
};

/** Answers a chat that used ten tokens of input and ten of output. */
export const answerChat: Answer = (_seen, response) => {
  const usage = { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 };
  const answer = { id: 'x', model: 'gpt-4o-mini', choices: [], usage };
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
};

/** A provider that records its requests and answers as the test says. It reads the whole body first. */
export async function startUpstream(answer: Answer = OK, host = '127.0.0.1'): Promise<Upstream> {
  const seen: Seen[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer);
    } catch {
      // The body broke off: a request that was never made.
      return;
    }
    const one = {
      method: request.method ?? '',
      url: request.url ?? '',
      headers: request.headers,
      rawHeaders: request.rawHeaders,
      body: Buffer.concat(chunks),
    };
    seen.push(one);
    await answer(one, response, request);
  });
  // On a busy machine it could close a kept connection while a call comes on it.
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${(server.address() as AddressInfo).port}`,
    seen,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

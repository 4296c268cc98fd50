import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';
import { createPresign, type Presign, type PresignOptions } from '../src/index.ts';

export const API_KEY = 'presign_sk_0123456789';

/** One request as an issuer saw it. */
export type Seen = {
  readonly method: string;
  readonly url: URL;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
};

export type Answer = (response: ServerResponse, seen: Seen) => void;

/** Something that answers as an issuer might, and a client of it. */
export type Pretended = { readonly url: string; readonly seen: Seen[]; readonly presign: Presign };

/** Answers each request as is said for it, in turn; those after the last as the last. */
export async function pretendIssuer(
  answers: readonly Answer[],
  options: Partial<PresignOptions> = {},
): Promise<Pretended> {
  const seen: Seen[] = [];
  const server = createServer(async (request, response) => {
    const { method = '', headers } = request;
    const one = { method, url: new URL(request.url ?? '', url), headers, body: await text(request) };
    seen.push(one);
    answers[Math.min(seen.length, answers.length) - 1]?.(response, one);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, seen, presign: createPresign({ url, apiKey: API_KEY, ...options }) };
}

/** An answer of JSON. */
export const json =
  (status: number, body: unknown, headers: Record<string, string> = {}): Answer =>
  (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
  };

/** A refusal as issuers send it. */
export const refusal = (status: number, code: string, headers: Record<string, string> = {}, more = {}) =>
  json(status, { error: { code, message: `It is ${code}.`, type: 'api_error', ...MORE, ...more } }, headers);

const MORE = { param: null, request_id: '0d9c8b7a-6f5e-4d3c-8b2a-190807060504' };

/** The connection ends before an answer comes. */
export const brokenOff: Answer = (response) => void response.socket?.destroy();

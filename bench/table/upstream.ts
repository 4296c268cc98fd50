// The provider behind every peer, in a process of its own. It answers by the header `x-answer`, or by `"stream":true` where a
// peer does not pass that header on. Sends its ports to its parent. Arguments: the files of a TLS key and its certificate.
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { ANSWER, EVENT_COUNT, EVENT_MS, LONG_ANSWER, MCP_ANSWER, SLOW } from './load.ts';

const [keyFile = '', certificateFile = ''] = process.argv.slice(2);
const HEAD = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'gpt-4o-mini' };
const event = (value: object) => `data: ${JSON.stringify({ ...HEAD, ...value })}\n\n`;
const usage = { prompt_tokens: 250, completion_tokens: EVENT_COUNT, total_tokens: 250 + EVENT_COUNT };
const EVENTS = [
  ...Array.from({ length: EVENT_COUNT - 1 }, () =>
    event({ choices: [{ index: 0, delta: { content: ' word' }, finish_reason: null }], usage: null }),
  ),
  `${event({ choices: [], usage })}data: [DONE]\n\n`,
];

function answer(request: IncomingMessage, response: ServerResponse): void {
  let asksForStream = false;
  request.on('data', (chunk: Buffer) => {
    asksForStream ||= chunk.includes('"stream":true') || chunk.includes('"stream": true');
  });
  request.once('end', () => {
    const kind = request.headers['x-answer'] ?? (asksForStream ? 'burst' : 'json');
    if (kind === 'burst' || kind === 'paced')
      return stream(response, EVENTS, kind === 'paced' ? EVENT_MS : 0);
    if (kind === 'slow') return stream(response, EVENTS.slice(-SLOW.events), SLOW.everyMs);
    const body = kind === 'mcp' ? MCP_ANSWER : kind === 'long' ? LONG_ANSWER : ANSWER;
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length }).end(body);
  });
}

/** Writes each event by itself, as providers do: one in each turn of the event loop, or one each so many ms. */
function stream(response: ServerResponse, events: readonly string[], everyMs: number): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  let next = 0;
  const more = () => {
    const each = events[next++];
    if (each === undefined || response.destroyed) return void response.end();
    response.write(each);
    if (everyMs > 0) setTimeout(more, everyMs);
    else setImmediate(more);
  };
  more();
}

const options = { keepAliveTimeout: 600_000 };
const plain = createServer(options, answer);
const tls = createTlsServer(
  { ...options, key: readFileSync(keyFile), cert: readFileSync(certificateFile) },
  answer,
);
const portOf = (server: typeof plain) => (server.address() as AddressInfo).port;
plain.listen(0, '127.0.0.1', () =>
  tls.listen(0, '127.0.0.1', () => process.send?.({ port: portOf(plain), tlsPort: portOf(tls) })),
);

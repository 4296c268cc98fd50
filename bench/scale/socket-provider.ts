// The provider of sockets.ts: Responses over a socket, and as a stream. Sends its port to its parent.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { WebSocketServer } from 'ws';

/** Eight words of an answer. */
const WORDS = 8;
const response = {
  id: 'resp_1',
  object: 'response',
  model: 'gpt-4o-mini',
  service_tier: 'default',
  tools: [],
};
const usage = {
  ...{ input_tokens: 250, output_tokens: WORDS, total_tokens: 250 + WORDS },
  input_tokens_details: { cached_tokens: 0 },
  output_tokens_details: { reasoning_tokens: 0 },
};
const EVENTS = [
  { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } },
  ...Array.from({ length: WORDS }, () => ({
    type: 'response.output_text.delta',
    item_id: 'm',
    delta: ' word',
  })),
  { type: 'response.completed', response: { ...response, status: 'completed', output: [], usage } },
];
const MESSAGES = EVENTS.map((event) => JSON.stringify(event));
const STREAM = EVENTS.map((event, i) => `event: ${event.type}\ndata: ${MESSAGES[i]}\n\n`);

/** Writes each event by itself, as providers do. */
function write(pieces: readonly string[], send: (piece: string) => void, end = () => {}): void {
  let next = 0;
  const more = () => {
    const piece = pieces[next++];
    if (piece === undefined) return end();
    send(piece);
    setImmediate(more);
  };
  more();
}

const sockets = new WebSocketServer({ noServer: true, perMessageDeflate: false });
const server = createServer({ keepAliveTimeout: 600_000 }, (request, answer) => {
  request.resume().once('end', () => {
    answer.writeHead(200, { 'content-type': 'text/event-stream' });
    write(
      STREAM,
      (piece) => answer.write(piece),
      () => answer.end(),
    );
  });
});
server.on('upgrade', (request, socket, head) =>
  sockets.handleUpgrade(request, socket, head, (open) => {
    open.on('error', () => {});
    open.on('message', () => write(MESSAGES, (piece) => open.send(piece)));
  }),
);
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));

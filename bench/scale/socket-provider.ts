// The provider of sockets.ts: Responses over a socket and as a stream, and Realtime. Sends its port to its parent.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';

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

const MODEL = 'gpt-realtime';
const REALTIME_USAGE = {
  ...{ input_tokens: 250, output_tokens: WORDS, total_tokens: 250 + WORDS },
  input_token_details: { text_tokens: 250, audio_tokens: 0, image_tokens: 0, cached_tokens: 0 },
  output_token_details: { text_tokens: WORDS, audio_tokens: 0 },
};
const APPEND = Buffer.from('"input_audio_buffer.append"');
/** Sound with this beginning gets no echo. */
const SILENT = Buffer.from('"audio":"AAAA');

let responses = 0;

/** The events of a response, as Realtime has them. */
function realtimeEvents(metadata: unknown): string[] {
  const id = `resp_${++responses}`;
  const of = { id, object: 'realtime.response', metadata };
  const delta = { type: 'response.output_text.delta', response_id: id, item_id: 'm', delta: ' word' };
  return [
    { type: 'response.created', response: { ...of, status: 'in_progress', output: [], usage: null } },
    ...Array.from({ length: WORDS }, () => delta),
    { type: 'response.done', response: { ...of, status: 'completed', output: [], usage: REALTIME_USAGE } },
  ].map((event) => JSON.stringify(event));
}

/** Speaks Realtime. Sound comes back as a delta of as many bytes. */
function serveRealtime(open: WebSocket): void {
  open.send(JSON.stringify({ type: 'session.created', session: { model: MODEL } }));
  open.on('message', (data: Buffer) => {
    if (data.includes(APPEND)) {
      if (data.includes(SILENT)) return;
      const audio = data.toString('latin1', data.indexOf('"audio":"') + 9, data.length - 2);
      const place = { response_id: 'r', item_id: 'm', output_index: 0, content_index: 0 };
      return open.send(JSON.stringify({ type: 'response.output_audio.delta', ...place, delta: audio }));
    }
    const event = JSON.parse(String(data)) as {
      type: string;
      session?: object;
      response?: { metadata?: unknown };
    };
    if (event.type === 'session.update')
      open.send(JSON.stringify({ type: 'session.updated', session: { ...event.session, model: MODEL } }));
    else if (event.type === 'response.create')
      write(realtimeEvents(event.response?.metadata), (piece) => open.send(piece));
  });
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
    if (request.url?.includes('/realtime')) serveRealtime(open);
    else open.on('message', () => write(MESSAGES, (piece) => open.send(piece)));
  }),
);
server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, () =>
  process.send?.((server.address() as AddressInfo).port),
);

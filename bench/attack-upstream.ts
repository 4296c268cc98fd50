// A provider in a process of its own: a short completion, 60 MB of embeddings, or 60 MB of a stream. Sends its port to its parent.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const usage = { prompt_tokens: 9, completion_tokens: 9, total_tokens: 18 };
const ANSWER = JSON.stringify({ choices: [{ message: { content: 'x'.repeat(500) } }], usage });
const PIECES = 1_000;
const NUMBERS = Buffer.from('-0.01234567,'.repeat(5_000));
const OBJECTS = Buffer.from('{},'.repeat(20_000));
const STREAMS: Readonly<Record<string, Buffer>> = {
  'blank lines': Buffer.alloc(60_000, '\n'),
  events: Buffer.from('data: {}\n\n'.repeat(6_000)),
};

const server = createServer((request, response) => {
  request.resume().once('end', () => {
    const kind = String(request.headers['x-answer']);
    const stream = STREAMS[kind];
    response.writeHead(200, { 'content-type': stream ? 'text/event-stream' : 'application/json' });
    if (!stream && !request.url?.includes('embeddings')) return response.end(ANSWER);
    const piece = stream ?? (kind === 'objects' ? OBJECTS : NUMBERS);
    let left = PIECES;
    const more = () => {
      while (left-- > 0) if (!response.write(piece)) return response.once('drain', more);
      return response.end(`0],"usage":${JSON.stringify(usage)}}`);
    };
    if (!stream) response.write('{"data":[');
    return more();
  });
});
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));

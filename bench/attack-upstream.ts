// A provider and MCP server in a process of its own: a short completion, 60 MB of embeddings, or 60 MB of a stream, coded if the call
// asks for it. Counts the calls that arrive and cost a use. Sends its port to its parent, and the count when the parent asks.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

const usage = { prompt_tokens: 9, completion_tokens: 9, total_tokens: 18 };
const ANSWER = JSON.stringify({ choices: [{ message: { content: 'x'.repeat(500) } }], usage });
const RESULT = JSON.stringify({ jsonrpc: '2.0', id: 1, result: { content: [] } });
const PIECES = 1_000;
const PIECE: Readonly<Record<string, Buffer>> = {
  numbers: Buffer.from('-0.01234567,'.repeat(5_000)),
  objects: Buffer.from('{},'.repeat(20_000)),
  'blank lines': Buffer.alloc(60_000, '\n'),
  events: Buffer.from('data: {}\n\n'.repeat(6_000)),
  messages: Buffer.from('data: {"jsonrpc":"2.0","method":"m"}\n\n'.repeat(1_600)),
  'one event': Buffer.alloc(60_000, 'x'),
  tools: Buffer.from('{"name":"x"},'.repeat(4_600)),
  lists: Buffer.from(`data: {"id":2,"result":{"tools":[${'{},'.repeat(19_900)}{}]}}\n\n`),
};
const TAIL = `0],"usage":${JSON.stringify(usage)}}`;

/** One of each kind. The coded bytes of 60 MB are a few kilobytes. */
const coded = new Map<string, Buffer>();
function codedAnswer(kind: string, coding: string): Buffer {
  const known = coded.get(kind + coding);
  if (known) return known;
  const head = kind === 'numbers' ? '{"data":[' : '';
  const whole = Buffer.concat([
    Buffer.from(head),
    ...Array.from({ length: PIECES }, () => PIECE[kind] ?? Buffer.alloc(0)),
    Buffer.from(head && TAIL),
  ]);
  const quick = { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } };
  // Node 20 cannot write zstd. The gateway does not read it either, so any bytes will do.
  const bytes =
    coding === 'br' ? brotliCompressSync(whole, quick) : coding === 'gzip' ? gzipSync(whole) : whole;
  coded.set(kind + coding, bytes);
  return bytes;
}

let calls = 0;
const server = createServer((request, response) => {
  const isMcp = request.url?.startsWith('/mcp') === true;
  const isEmbedding = request.url?.includes('embeddings') === true;
  const kind = String(request.headers['x-answer'] ?? (isEmbedding ? 'numbers' : 'short'));
  // To ask for the list of tools costs no use.
  if (!['tools', 'lists'].includes(kind)) calls++;
  request.resume().once('end', () => {
    const coding = request.headers['x-coding']?.toString();
    const isStream = !['numbers', 'objects', 'short', 'tools'].includes(kind);
    response.writeHead(200, {
      'content-type': isStream ? 'text/event-stream' : 'application/json',
      ...(coding === undefined ? {} : { 'content-encoding': coding }),
    });
    if (kind === 'short') return response.end(isMcp ? RESULT : ANSWER);
    if (coding !== undefined) return response.end(codedAnswer(kind, coding));
    let left = PIECES;
    const more = () => {
      while (left-- > 0) if (!response.write(PIECE[kind])) return response.once('drain', more);
      return response.end(isStream ? '\n\n' : TAIL);
    };
    if (!isStream) response.write(kind === 'tools' ? '{"result":{"tools":[' : '{"data":[');
    if (kind === 'one event') response.write('data: ');
    return more();
  });
});
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
process.on('message', () => process.send?.(calls));
// It must not outlive the process that measures, whose output it would hold open.
process.once('disconnect', () => process.exit());

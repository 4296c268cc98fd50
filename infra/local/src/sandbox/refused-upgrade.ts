import { STATUS_CODES } from 'node:http';
import type { Http2Bindings, HttpBindings } from '@hono/node-server';

/**
 * Answers a refused handshake of a socket with the body of its refusal, as a provider does. The server by itself sends the status and the
 * headers only.
 */
export async function answerRefusedUpgrade(
  answer: Response,
  { incoming }: HttpBindings | Http2Bindings,
): Promise<Response> {
  if (incoming.headers.upgrade?.toLowerCase() !== 'websocket' || answer.status < 400) return answer;
  const body = Buffer.from(await answer.clone().arrayBuffer());
  const head = [
    `HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status] ?? ''}`,
    'connection: close',
    `content-length: ${body.length}`,
    `content-type: ${answer.headers.get('content-type') ?? 'application/json'}`,
  ];
  const { socket } = incoming;
  await new Promise<void>((resolve) => {
    socket.once('close', resolve);
    socket.end(Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body]), resolve);
  });
  // The server answers a connection only while it is open.
  socket.destroy();
  return answer;
}

import { type IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { writeAnswer } from '../share/discard.ts';

/** The answer to a request whose connection Node no longer handles, as for every upgrade. It is the last answer on that connection. */
export function answerOn(incoming: IncomingMessage, socket: Duplex): ServerResponse {
  const outgoing = new ServerResponse(incoming);
  outgoing.shouldKeepAlive = false;
  outgoing.assignSocket(socket as Socket);
  outgoing.once('finish', () => {
    outgoing.detachSocket(socket as Socket);
    socket.end();
    // Destroys the socket after LINGER_MS. Otherwise a client that never stops sending would keep it open.
    socket.resume();
    setTimeout(() => socket.destroy(), LINGER_MS).unref();
  });
  return outgoing;
}

const LINGER_MS = 1_000;

/** Answers such a request. */
export async function answerRaw(incoming: IncomingMessage, socket: Duplex, answer: Response): Promise<void> {
  if (socket.destroyed) return;
  answer.headers.set('connection', answer.status === 426 ? 'close, upgrade' : 'close');
  // RFC 9110 §15.5.22.
  if (answer.status === 426) answer.headers.set('upgrade', 'HTTP/1.1');
  const outgoing = answerOn(incoming, socket);
  await writeAnswer(outgoing, answer);
  outgoing.end();
}

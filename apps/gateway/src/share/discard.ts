import type { IncomingMessage, ServerResponse } from 'node:http';
import { forgetBody } from './arrival.ts';

/** A request that has not ended by then is cut off. */
const PATIENCE_MS = 30_000;

const seen = new WeakSet<IncomingMessage>();

/**
 * Reads the rest of a refused request and forgets it, so that a holder who is still sending can read the answer. Closing
 * the connection would reset it, and SDKs retry after a reset. It reads in turns, because other calls need the time.
 * @param whenRead called when nothing more will be read
 */
export function discardRest(request: IncomingMessage, whenRead?: () => void): void {
  const isOver = request.complete || request.destroyed;
  if (whenRead && !isOver) request.once('end', whenRead).once('close', whenRead);
  forgetBody(request);
  if (isOver) whenRead?.();
  if (isOver || seen.has(request)) return;
  seen.add(request);
  const late = setTimeout(() => request.destroy(), PATIENCE_MS);
  const stop = () => clearTimeout(late);
  // Whichever comes first.
  request.once('end', stop).once('close', stop);
}

/**
 * Answers a request, and closes its connection once the rest of the request has been read. Node closes the connection when
 * the answer ends, so the end waits. `Content-Length` shows the holder before that the answer is whole.
 */
export async function answerAndClose(
  request: IncomingMessage,
  outgoing: ServerResponse,
  answer: Response,
): Promise<undefined> {
  answer.headers.set('connection', 'close');
  await writeAnswer(outgoing, answer);
  discardRest(request, () => outgoing.end());
}

/** Writes a whole answer, and leaves its end to the caller. */
export async function writeAnswer(outgoing: ServerResponse, answer: Response): Promise<void> {
  const body = Buffer.from(await answer.arrayBuffer());
  answer.headers.set('content-length', String(body.length));
  outgoing.writeHead(answer.status, Object.fromEntries(answer.headers));
  outgoing.write(body);
}

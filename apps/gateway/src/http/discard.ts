import type { IncomingMessage, ServerResponse } from 'node:http';

/** A chunk has at most 64 KiB, so one request is read at up to 3 MB/s. */
const PAUSE_MS = 20;
/** Beyond so many requests at once, each is read more slowly. */
const AT_ONCE = 8;

/** How long to wait after a chunk of a refused request, so that all of them together take little of the time of other calls. */
export const pauseMs = (atOnce: number): number => PAUSE_MS * Math.max(1, atOnce / AT_ONCE);

/** A request that has not ended by then is cut off. */
const PATIENCE_MS = 30_000;

let discarding = 0;
const seen = new WeakSet<IncomingMessage>();

/**
 * Reads the rest of a refused request and forgets it, so that a holder who is still sending can read the answer. Closing
 * the connection would reset it, and SDKs retry after a reset. It reads slowly, because other calls need the time.
 * @param whenRead called when nothing more will be read
 */
export function discardRest(request: IncomingMessage, whenRead?: () => void): void {
  if (request.complete || request.destroyed) {
    request.resume();
    whenRead?.();
    return;
  }
  if (whenRead) request.once('end', whenRead).once('close', whenRead);
  if (seen.has(request)) return;
  seen.add(request);
  discarding++;
  let pause: NodeJS.Timeout | undefined;
  const late = setTimeout(() => request.destroy(), PATIENCE_MS);
  const onData = () => {
    request.pause();
    pause = setTimeout(() => request.resume(), pauseMs(discarding));
  };
  const stop = () => {
    discarding--;
    clearTimeout(pause);
    clearTimeout(late);
    request.off('data', onData).off('end', stop).off('close', stop);
  };
  // Whichever comes first.
  request.on('data', onData).on('end', stop).on('close', stop);
  request.resume();
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

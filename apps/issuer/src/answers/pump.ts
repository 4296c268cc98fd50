import type { ServerResponse } from 'node:http';
import type { Http2ServerResponse } from 'node:http2';

/** How long a caller may take to read an answer. */
export type Patience = {
  /** All of it. */
  readonly longestMs?: number;
  /** One text. */
  readonly eachMs?: number;
  /** All of it while others wait for what this answer keeps. The time in which the next text is made does not count. */
  readonly wantedMs?: number;
  readonly isWanted?: () => boolean;
};

/** An answer whose body is written piece by piece. */
export type Written = {
  readonly writable: WritableStream<Uint8Array>;
  /** The answer itself. */
  readonly outgoing: Pick<ServerResponse | Http2ServerResponse, 'destroy'>;
};

/**
 * Writes texts as they are taken. The answer breaks off when one fails, or when reading takes too long.
 * @throws whatever broke it off, which is for the caller to log
 */
export async function pump(
  { writable, outgoing }: Written,
  texts: AsyncIterable<string>,
  patience: Patience,
): Promise<void> {
  const writer = writable.getWriter();
  const reading = watchReader(patience);
  try {
    for await (const text of texts) await reading.wait(writer.write(Buffer.from(text)));
    await writer.close();
  } catch (error) {
    // Not `writer.abort`: the server would print its error to stderr, with a stack and whatever the error quotes.
    outgoing.destroy();
    throw error;
  } finally {
    reading.close();
  }
}

/** How often the patience with a caller is judged. */
const LOOK_MS = 250;

/** Measures how long a caller takes to read, and loses the patience with it. */
function watchReader({ longestMs = Infinity, eachMs = Infinity, wantedMs = Infinity, isWanted }: Patience) {
  const began = performance.now();
  let waitedMs = 0;
  let since: number | undefined;
  let giveUp: (error: Error) => void = () => {};
  const lost = new Promise<never>((_resolve, reject) => {
    giveUp = reject;
  });
  lost.catch(() => {});
  const look = () => {
    const now = performance.now();
    const thisMs = since === undefined ? 0 : now - since;
    const isLate = now - began > longestMs || thisMs > eachMs;
    if (isLate || (thisMs > 0 && waitedMs + thisMs > wantedMs && isWanted?.()))
      giveUp(new Error('the caller reads too slowly'));
  };
  const timer = setInterval(look, LOOK_MS);
  return {
    /** @throws Error when the caller reads too slowly */
    wait: async (written: Promise<void>): Promise<void> => {
      since = performance.now();
      written.catch(() => {});
      await Promise.race([written, lost]);
      waitedMs += performance.now() - since;
      since = undefined;
    },
    close: () => clearInterval(timer),
  };
}

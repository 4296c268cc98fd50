import { connect, type Socket } from 'node:net';

/** An answer as it came over the wire; `body` is as framed there. */
export type RawAnswer = {
  readonly status: number;
  /** Names in lower case, in the order they came. */
  readonly headers: readonly (readonly [string, string])[];
  readonly body: string;
};

/** How long a connection is silent, once it has answered, until nothing more is expected of it. */
const SILENCE_MS = 1_500;
/** How long an answer that is expected may take. */
const PATIENCE_MS = 60_000;

/** Opens a connection to an `http://host:port` address. */
export function openSocket(origin: string): Promise<Socket> {
  const { hostname, port } = new URL(origin);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => resolve(socket));
    socket.once('error', reject);
  });
}

/**
 * Sends bytes as they are and returns all that comes, as latin1, until the server closes, or falls silent after at
 * least so many answers.
 */
export const exchange = (origin: string, bytes: string | Buffer, answers = 1): Promise<string> =>
  heard(origin, bytes, (text) => (readAnswers(text).length >= answers ? SILENCE_MS : PATIENCE_MS));

/** The text that comes until the server closes, or is silent for as long as `patience` has with what came so far. */
async function heard(origin: string, bytes: string | Buffer, patience: (text: string) => number) {
  const socket = await openSocket(origin);
  return new Promise<string>((resolve) => {
    let text = '';
    socket.setTimeout(patience(text), () => socket.destroy());
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      socket.setTimeout(patience(text));
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(text));
    socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
  });
}

/** All whole answers in what came over one connection; bodies must have a length or be chunked. */
export function readAnswers(text: string): RawAnswer[] {
  const answers: RawAnswer[] = [];
  for (let rest = text; rest.startsWith('HTTP/'); ) {
    const end = rest.indexOf('\r\n\r\n');
    if (end < 0) break;
    const [statusLine = '', ...lines] = rest.slice(0, end).split('\r\n');
    const headers = lines.map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const;
    });
    const get = (name: string) => headers.find(([each]) => each === name)?.[1];
    const afterHead = rest.slice(end + 4);
    const length =
      get('transfer-encoding') === 'chunked' ? chunkedLength(afterHead) : Number(get('content-length') ?? 0);
    if (afterHead.length < length) break;
    answers.push({ status: Number(statusLine.split(' ')[1]), headers, body: afterHead.slice(0, length) });
    rest = afterHead.slice(length);
  }
  return answers;
}

/** Sends one request as it is and reads its one answer (the first that is not informational). */
export async function askRaw(origin: string, bytes: string | Buffer): Promise<RawAnswer> {
  const answerIn = (text: string) => readAnswers(text).find(({ status }) => status >= 200);
  const answer = answerIn(await heard(origin, bytes, (text) => (answerIn(text) ? 1 : PATIENCE_MS)));
  if (!answer) throw new Error('no answer came');
  return answer;
}

function chunkedLength(text: string): number {
  const end = text.indexOf('0\r\n\r\n');
  return end < 0 ? Number.POSITIVE_INFINITY : end + 5;
}

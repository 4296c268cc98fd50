import { once } from 'node:events';
import { WebSocket } from 'ws';
import { eventually } from '../harness/eventually.ts';
import type { Json } from './responses-provider.ts';

/** A socket of a holder, with what it got. */
export type HolderSocket = {
  readonly socket: WebSocket;
  readonly events: Json[];
  readonly send: (event: Json | string | Buffer) => void;
  /** Resolves with the next event that fits, also if it came before. Each is taken once. */
  readonly next: (fits?: string | ((event: Json) => boolean), ms?: number) => Promise<Json>;
  /** Sends a turn, and resolves with its last event. */
  readonly turn: (event?: Json) => Promise<Json>;
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
  readonly headers: Record<string, string | string[] | undefined>;
};

export class RefusedHandshake extends Error {
  readonly status: number;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly body: string;

  constructor(status: number, headers: RefusedHandshake['headers'], body: string) {
    super(`the handshake was answered with ${status}: ${body}`);
    Object.assign(this, { status, headers, body });
    this.status = status;
    this.headers = headers;
    this.body = body;
  }

  get code(): unknown {
    return (JSON.parse(this.body) as { error: { code: string } }).error.code;
  }
}

export const CREATE = { type: 'response.create', model: 'gpt-4.1-mini', input: 'Hi.', max_output_tokens: 20 };

const LAST = /^(?:response\.(?:completed|incomplete|failed)|error)$/;

/** Opens the socket of a URL. Throws `RefusedHandshake` where it is refused. */
export async function openSocket(
  url: string,
  {
    headers = {},
    protocols = [] as string[],
    ...more
  }: {
    headers?: Record<string, string>;
    protocols?: string[];
    perMessageDeflate?: boolean;
    autoPong?: boolean;
  } = {},
): Promise<HolderSocket> {
  const socket = new WebSocket(url.replace(/^http/, 'ws'), protocols, { headers, ...more });
  const events: Json[] = [];
  const waiting: { fits: (event: Json) => boolean; take: (event: Json) => void; end: () => void }[] = [];
  let answered: Record<string, string | string[] | undefined> = {};
  socket.once('upgrade', (response) => {
    answered = response.headers;
  });
  socket.on('message', (data) => {
    const event = JSON.parse(String(data)) as Json;
    const i = waiting.findIndex(({ fits }) => fits(event));
    if (i < 0) events.push(event);
    else waiting.splice(i, 1)[0]?.take(event);
  });
  const closed = once(socket, 'close').then(([code, reason]) => ({
    code: code as number,
    reason: String(reason),
  }));
  let left = '(none)';
  // Nothing comes any more.
  void closed.then(({ code, reason }) => {
    left = `${code} ${reason}`;
    for (const { end } of waiting.splice(0)) end();
  });
  await new Promise<void>((resolve, reject) => {
    socket.once('open', resolve);
    socket.once('error', reject);
    socket.once('unexpected-response', async (_request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of response) chunks.push(chunk as Buffer);
      reject(new RefusedHandshake(response.statusCode ?? 0, response.headers, String(Buffer.concat(chunks))));
    });
  });
  socket.on('error', () => {});
  const send: HolderSocket['send'] = (event) =>
    socket.send(typeof event === 'string' || event instanceof Buffer ? event : JSON.stringify(event));
  const next: HolderSocket['next'] = (wanted = () => true, ms = 60_000) => {
    const fits = typeof wanted === 'string' ? ({ type }: Json) => type === wanted : wanted;
    const i = events.findIndex(fits);
    if (i >= 0) return Promise.resolve(events.splice(i, 1)[0] as Json);
    return new Promise((resolve, reject) => {
      const end = () => {
        clearTimeout(late);
        const { readyState } = socket;
        const last = JSON.stringify(events.slice(-20));
        reject(
          new Error(
            `no such event; the socket is in state ${readyState}, closed by ${left}; the last are ${last}`,
          ),
        );
      };
      const late = setTimeout(end, ms);
      if (socket.readyState === WebSocket.CLOSED) return end();
      waiting.push({
        fits,
        end,
        take: (event) => {
          clearTimeout(late);
          resolve(event);
        },
      });
    });
  };
  const turn: HolderSocket['turn'] = (event = CREATE) => {
    send(event);
    return next(
      (each) => LAST.test(String(each.type)) && (each.stream_id === event.stream_id || each.type === 'error'),
    );
  };
  return { socket, events, send, next, turn, closed, headers: answered };
}

/** The code of an error event. */
export const codeOf = (event: Json): unknown => (event.error as Json | undefined)?.code ?? event.type;

type Figures = { readonly used: number; readonly spent: number; readonly held: number };

/** The figures of a URL. On a busy machine its events may have spent the time that a gateway reads for it: then they are asked for again. */
export const statusOf = (url: string): Promise<Figures> =>
  eventually(async () => {
    const answer = await fetch(url.replace(/\/v1\/(?:responses|realtime)$/, ''));
    const figures = (await answer.json()) as Figures;
    return answer.status !== 429 && figures;
  });

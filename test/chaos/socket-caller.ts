import type { IncomingMessage } from 'node:http';
import { WebSocket } from 'ws';
import type { Caller } from './kind.ts';
import type { Outcome } from './load.ts';
import type { Random } from './random.ts';

const BROKEN: Outcome = {
  status: 0,
  code: undefined,
  cost: undefined,
  retryAfter: undefined,
  bytes: Buffer.alloc(0),
};

type Event = { readonly type: string; readonly status?: number; readonly error?: { readonly code?: string } };

/** The turns of a protocol. */
type Turns = {
  /** The query of its address. */
  readonly query: string;
  /** The event that begins a turn of random size, of a call of this name. */
  readonly create: (name: string, random: Random) => object;
  /** The last event of a turn. */
  readonly last: string;
};

export const RESPONSES_TURNS: Turns = {
  query: '',
  create: (model, random) => ({
    type: 'response.create',
    model,
    input: 'x'.repeat(random.int(1, 1_500)),
    max_output_tokens: random.int(16, 2_000),
  }),
  last: 'response.completed',
};

/** Turns of Realtime. Each turn has the name of its call in its metadata, and the provider reads it there. */
export const REALTIME_TURNS: Turns = {
  query: '?model=gpt-realtime',
  create: (name, random) => ({
    type: 'response.create',
    response: { metadata: { call: name }, max_output_tokens: random.int(16, 2_000) },
  }),
  last: 'response.done',
};

/** Callers that call as turns of a socket, and open another one where the last has ended. */
export const socketCallers = (turns: Turns) => (): Caller => {
  let socket: WebSocket | undefined;
  return {
    call: async (url, model, random) => {
      if (socket?.readyState !== WebSocket.OPEN) {
        const opened = await open(`${url}${turns.query}`);
        if (!(opened instanceof WebSocket)) return opened;
        socket = opened;
      }
      return turn(socket, turns.create(model, random), turns.last);
    },
    close: () => socket?.terminate(),
  };
};

/** Opens a socket. Resolves with the outcome of a handshake that is refused. */
function open(url: string): Promise<WebSocket | Outcome> {
  const socket = new WebSocket(url.replace(/^http/, 'ws'), { perMessageDeflate: false });
  return new Promise((resolve) => {
    socket.once('open', () => resolve(socket));
    socket.on('error', () => resolve(BROKEN));
    socket.once('unexpected-response', (_request, response: IncomingMessage) => {
      const code = response.headers['x-presign-code'];
      const status = response.statusCode ?? 0;
      resolve({ ...BROKEN, status, code: code === undefined ? undefined : String(code) });
      response.resume();
    });
  });
}

/** Makes one turn. Resolves with its end, or as broken if the socket ends before. */
function turn(socket: WebSocket, event: object, last: string): Promise<Outcome> {
  return new Promise((resolve) => {
    const end = (outcome: Outcome) => {
      socket.off('message', heard).off('close', broken);
      resolve(outcome);
    };
    const broken = () => end(BROKEN);
    const heard = (said: Buffer) => {
      const { type, status = 0, error } = JSON.parse(said.toString()) as Event;
      if (type === last) end({ ...BROKEN, status: 200, bytes: said });
      if (type === 'error') end({ ...BROKEN, status, code: error?.code, bytes: said });
    };
    socket.on('message', heard).once('close', broken);
    socket.send(JSON.stringify(event));
  });
}

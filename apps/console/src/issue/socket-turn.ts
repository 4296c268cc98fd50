import type { Head, UrlCall } from './call-url.ts';
import { readJson } from './schema.ts';

/** Realtime has only sockets. */
export const isRealtime = (path: string): boolean => path.endsWith('/realtime');

const QUESTION = 'Why is the sky blue?';

/** The events of a first turn: those of Responses, or those of Realtime for an answer in text. */
export function eventsOf(path: string, model: string): string {
  const item = { type: 'message', role: 'user', content: [{ type: 'input_text', text: QUESTION }] };
  const events = isRealtime(path)
    ? [
        { type: 'conversation.item.create', item },
        { type: 'response.create', response: { output_modalities: ['text'], max_output_tokens: 256 } },
      ]
    : [{ type: 'response.create', model, input: QUESTION, max_output_tokens: 256 }];
  return JSON.stringify(events, null, 2);
}

type SocketTurn = Pick<UrlCall, 'base' | 'path' | 'body' | 'signal' | 'onHead' | 'onText'> & {
  readonly model: string;
};

type SocketEvent = {
  readonly type?: string;
  readonly delta?: unknown;
  readonly status?: number;
  readonly error?: { readonly code?: string; readonly message?: string; readonly request_id?: string };
};

/** The code and the request of an error of the gateway. An error of the provider has another message, and no request id. */
export function refusalIn({ error }: Pick<SocketEvent, 'error'>): Pick<Head, 'code' | 'requestId'> {
  const { code, message, request_id: requestId } = error ?? {};
  return code && requestId && message?.startsWith(`${code}: `)
    ? { code, requestId }
    : { code: null, requestId: null };
}

const LAST = ['response.completed', 'response.incomplete', 'response.failed', 'response.done'];
const TEXT = ['response.output_text.delta', 'response.text.delta'];

/**
 * Opens a URL as a WebSocket, sends the events of one turn, and closes it after the turn.
 * @throws Error that does not name the URL
 */
export function turnOnSocket({ base, path, model, body, signal, onHead, onText }: SocketTurn): Promise<void> {
  const events = eventsIn(body);
  const query = isRealtime(path) ? `?model=${encodeURIComponent(model)}` : '';
  const socket = new WebSocket(`${base}${path}${query}`.replace(/^http/, 'ws'));
  const head = { status: 101, requestId: null, cost: null, code: null };
  signal.addEventListener('abort', () => socket.close(), { once: true });
  return new Promise<void>((resolve, reject) => {
    socket.onopen = () => {
      onHead(head);
      for (const event of events) socket.send(JSON.stringify(event));
    };
    socket.onmessage = ({ data }) => {
      const event = (readJson(String(data)) ?? {}) as SocketEvent;
      const { type = '', delta } = event;
      if (TEXT.includes(type) && typeof delta === 'string') onText(delta);
      if (type === 'error') {
        onHead({ ...head, status: event.status ?? 400, ...refusalIn(event) });
        onText(JSON.stringify(event, null, 2));
      }
      if (type === 'error' || LAST.includes(type)) {
        resolve();
        socket.close(1000);
      }
    };
    socket.onclose = ({ code, reason }) =>
      signal.aborted ? resolve() : reject(new Error(closed(new URL(base).origin, code, reason)));
  });
}

/** @throws Error */
function eventsIn(text: string): readonly unknown[] {
  const events = readJson(text);
  if (typeof events !== 'object' || events === null)
    throw new Error('Expected an event as JSON, or a list of events.');
  return Array.isArray(events) ? events : [events];
}

const closed = (origin: string, code: number, reason: string): string =>
  code === 1006
    ? `${origin} did not open a socket. The gateway may be down, or the URL is bound to other origins.`
    : `The socket closed with ${code}${reason === '' ? '' : `: ${reason}`}.`;

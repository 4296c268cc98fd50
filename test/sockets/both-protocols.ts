import { type HolderSocket, openSocket } from './holder.ts';
import { startRealtimeProvider } from './realtime-provider.ts';
import { eventsOf, type Json, type ProviderSocket } from './responses-provider.ts';

/** Text that a holder says in its turns. */
export const SAID = 'said-by-the-holder';

/** A protocol of sockets, as far as a test of both needs it. */
export type Protocol = {
  readonly name: 'Responses' | 'Realtime';
  /** Fields of the request that issues a URL for it. */
  readonly ask: { readonly provider: string; readonly path: string; readonly sockets: true };
  readonly model: string;
  readonly query: string;
  /** The event that begins a turn, and the type of its last event. */
  readonly create: Json;
  readonly last: string;
  /** The cost of a turn, in microdollars. */
  readonly cost: number;
};

const RESPONSES: Protocol = {
  name: 'Responses',
  ask: { provider: 'openai', path: '/v1/responses', sockets: true },
  model: 'gpt-4.1-mini',
  query: '',
  create: { type: 'response.create', model: 'gpt-4.1-mini', input: SAID, max_output_tokens: 20 },
  last: 'response.completed',
  // 10 tokens at 0.4 microdollars, and 5 at 1.6.
  cost: 12,
};

const REALTIME: Protocol = {
  name: 'Realtime',
  ask: { provider: 'openai', path: '/v1/realtime', sockets: true },
  model: 'gpt-realtime',
  query: '?model=gpt-realtime',
  create: { type: 'response.create', response: { instructions: SAID, max_output_tokens: 20 } },
  last: 'response.done',
  // 10 tokens of text at 4 microdollars, and 5 at 16.
  cost: 120,
};

export const PROTOCOLS = [RESPONSES, REALTIME] as const;

/** A provider of both protocols, which can hold the ends of turns back. */
export type BothProvider = {
  /** For `PROVIDERS_FILE`. */
  readonly file: object;
  /** The sockets of a protocol, as the provider sees them. */
  readonly sockets: (protocol: Protocol) => ProviderSocket[];
  /** From now on turns begin, and end with `release`. */
  readonly hold: () => void;
  /** How many turns wait for their end. */
  readonly held: () => number;
  /** Ends those that wait. Later ones end at once. */
  readonly release: () => void;
  readonly close: () => Promise<void>;
};

export async function startBothProvider(): Promise<BothProvider> {
  const provider = await startRealtimeProvider();
  const { welcome, serve } = provider;
  let waiting: (() => void)[] = [];
  let isHeld = false;
  const endLater = (end: () => void) => void (isHeld ? waiting.push(end) : end());
  const isRealtime = ({ request }: ProviderSocket) => request.url?.startsWith(REALTIME.ask.path) === true;
  provider.run = ({ end }) => endLater(() => end());
  provider.welcome = (of) => isRealtime(of) && welcome?.(of);
  provider.serve = (event, of) => {
    if (isRealtime(of)) return serve(event, of);
    const [created, ...rest] = eventsOf(event).map((each) => JSON.stringify(each));
    of.socket.send(created ?? '');
    endLater(() => {
      for (const each of rest) of.socket.send(each);
    });
  };
  return {
    file: { openai: { base_url: provider.url } },
    sockets: (protocol) => provider.sockets.filter((of) => isRealtime(of) === (protocol === REALTIME)),
    hold: () => {
      isHeld = true;
    },
    held: () => waiting.length,
    release: () => {
      isHeld = false;
      for (const end of waiting) end();
      waiting = [];
    },
    close: provider.close,
  };
}

export const openIn = ({ query }: Protocol, url: string, headers: Record<string, string> = {}) =>
  openSocket(`${url}${query}`, { headers });

/** Makes a turn. Resolves with its last event, or with its error. */
export function turnIn({ create, last }: Protocol, holder: HolderSocket): Promise<Json> {
  holder.send(create);
  return holder.next(({ type }) => type === last || type === 'error');
}

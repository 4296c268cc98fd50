import { CREATE, codeOf, type HolderSocket, openSocket } from './holder.ts';
import { startRealtimeProvider, usageOf } from './realtime-provider.ts';
import { eventsOf, type Json, type ResponsesProvider, startResponsesProvider } from './responses-provider.ts';

/** A provider of one protocol, whose responses end at once. */
export type Served = {
  readonly provider: ResponsesProvider;
  /** From now on a response ends when its function in the list is called, the first one first. */
  readonly holdBack: () => (() => void)[];
  readonly endAtOnce: () => void;
};

/** One protocol of sockets, so that a test can say the same of each. */
export type SocketProtocol = {
  readonly name: string;
  /** The fields that a URL for it is issued with. */
  readonly asked: { readonly provider: string; readonly path: string; readonly sockets: true };
  readonly start: () => Promise<Served>;
  readonly open: (url: string, headers?: Record<string, string>) => Promise<HolderSocket>;
  /** The event that begins a turn. Turns of several lanes run at once. */
  readonly create: (lane?: string, more?: Json) => Json;
  readonly laneOf: (event: Json) => unknown;
  /** The types of the last event of a response that is whole. */
  readonly last: string;
  /** The output bound that the provider got. */
  readonly boundOf: (create: Json) => unknown;
  /** The most tokens, and microdollars, by which one turn passes at least, and few. */
  readonly tokens: number;
  readonly money: number;
  /** Money for a turn with a bound of its own, and not for one without. */
  readonly littleMoney: number;
  readonly muchMoney: number;
};

const RESPONSES: SocketProtocol = {
  name: 'Responses',
  asked: { provider: 'openai', path: '/v1/responses', sockets: true },
  start: async () => {
    const provider = await startResponsesProvider();
    const { serve } = provider;
    const holdBack = () => {
      const pending: (() => void)[] = [];
      provider.serve = (event, { socket }) => {
        const [created, ...rest] = eventsOf(event);
        socket.send(JSON.stringify(created));
        pending.push(() => {
          for (const each of rest) socket.send(JSON.stringify(each));
        });
      };
      return pending;
    };
    return { provider, holdBack, endAtOnce: () => void Object.assign(provider, { serve }) };
  },
  open: (url, headers = {}) => openSocket(url, { headers }),
  create: (lane, more) => ({ ...CREATE, ...(lane !== undefined && { stream_id: lane }), ...more }),
  laneOf: ({ stream_id }) => stream_id,
  last: 'response.completed',
  boundOf: ({ max_output_tokens: bound }) => bound,
  tokens: 1_000,
  money: 200,
  littleMoney: 2_000,
  muchMoney: 100_000,
};

/** A turn on `gpt-realtime` holds 32,768 tokens of input at 32 microdollars each, and its output at 64. */
const REALTIME: SocketProtocol = {
  name: 'Realtime',
  asked: { provider: 'openai', path: '/v1/realtime', sockets: true },
  start: async () => {
    const provider = await startRealtimeProvider();
    const { run } = provider;
    // A rate of tokens refills within a minute, so a turn uses most of what it takes.
    provider.usage = () => usageOf(32_000, 5);
    const holdBack = () => {
      const pending: (() => void)[] = [];
      provider.run = (response) => void pending.push(() => response.end());
      return pending;
    };
    return { provider, holdBack, endAtOnce: () => void Object.assign(provider, { run }) };
  },
  open: (url, headers = {}) => openSocket(`${url}?model=gpt-realtime`, { headers }),
  create: (lane, more) => ({
    type: 'response.create',
    ...(lane !== undefined && { event_id: lane }),
    response: {
      max_output_tokens: 20,
      ...(lane !== undefined && { conversation: 'none', metadata: { lane } }),
      ...more,
    },
  }),
  laneOf: ({ response, error }) => {
    const { metadata } = (response ?? {}) as { readonly metadata?: Json | null };
    return metadata?.lane ?? (error as Json | undefined)?.event_id ?? undefined;
  },
  last: 'response.done',
  boundOf: ({ response }) => (response as Json).max_output_tokens,
  tokens: 33_000,
  money: 1_100_000,
  littleMoney: 1_100_000,
  muchMoney: 10_000_000,
};

export const PROTOCOLS: readonly SocketProtocol[] = [RESPONSES, REALTIME];

/** The creating events that the provider got. */
export const createsOf = ({ provider }: Served): Json[] =>
  provider.frames().filter(({ type }) => type === 'response.create');

/** Resolves once the response of a lane has begun. */
export const begins = ({ laneOf }: SocketProtocol, holder: HolderSocket, lane?: string): Promise<Json> =>
  holder.next((event) => event.type === 'response.created' && laneOf(event) === lane);

/** Resolves with the end of the turn of a lane: 'done', or the code of its error event. */
export async function ends(
  { laneOf, last }: SocketProtocol,
  holder: HolderSocket,
  lane?: string,
): Promise<unknown> {
  const isLast = ({ type }: Json) => type === last || type === 'error';
  const event = await holder.next((each) => isLast(each) && laneOf(each) === lane);
  return event.type === last ? 'done' : codeOf(event);
}

/** Has a turn to its end. */
export function turn(protocol: SocketProtocol, holder: HolderSocket, lane?: string, more?: Json) {
  holder.send(protocol.create(lane, more));
  return ends(protocol, holder, lane);
}

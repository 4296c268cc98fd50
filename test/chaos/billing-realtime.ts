import { setTimeout as sleep } from 'node:timers/promises';
import { startRealtimeProvider, usageOf } from '../sockets/realtime-provider.ts';
import type { Json, ProviderSocket } from '../sockets/responses-provider.ts';
import { type Billed, FATES, type Fate, numberIn, WORKLESS } from './billing-provider.ts';
import type { Books, Kind } from './kind.ts';
import { seeded } from './random.ts';

/** Of `gpt-realtime`, in microdollars a token of sound. */
const RATE = { input: 32, output: 64 };
const MOST_INPUT = 2_000;

/** A response to run: how it ends, and its usage. */
type Work = { readonly fate: Fate; readonly usage: Json };

/** A Realtime provider that does random work within the bounds of each response, and keeps its own books, by the name that its holder gave it. */
export const startRealtimeBilling: Kind['startProvider'] = async (options): Promise<Books> => {
  const { seed, fates = FATES, slowestMs = 40 } = options;
  const billed = new Map<string, Billed>();
  /** The names of turns, by their request ids. */
  const names = new Map<string, string>();
  const works = new Map<string, Work>();
  const provider = await startRealtimeProvider();
  const serve = provider.serve;
  const take = async (event: Json, of: ProviderSocket) => {
    const { metadata, max_output_tokens: maxTokens } = event.response as Asked;
    const { call: name, presign_turn: turn } = metadata;
    names.set(turn, name);
    const random = seeded(seed + numberIn(name));
    const [input, output] = [random.int(1, MOST_INPUT), random.int(1, maxTokens)];
    const fate = random.pick(fates);
    const again = billed.get(name);
    if (again) again.times++;
    const microusd = WORKLESS.has(fate) ? 0 : input * RATE.input + output * RATE.output;
    if (!again) billed.set(name, { fate, microusd, maxTokens, atMs: Date.now(), times: 1 });
    await sleep(random.int(0, slowestMs));
    if (WORKLESS.has(fate)) return of.socket.send(errorOf(ERRORS[fate], event.event_id));
    works.set(turn, { fate, usage: soundOf(input, output) });
    await serve(event, of);
  };
  provider.serve = (event, of) => (event.type === 'response.create' ? take(event, of) : serve(event, of));
  provider.run = ({ asked, end, session }) => {
    const { presign_turn: turn } = (asked as Asked).metadata;
    const { fate = 'answer', usage } = works.get(turn) ?? {};
    works.delete(turn);
    if (fate === 'answer') end('completed', usage);
    else if (fate === 'silent') end('completed', null);
    else if (fate === 'page') session.of.socket.send(errorOf('server_error', null));
    else session.of.socket.terminate();
  };
  return {
    billed,
    url: provider.url,
    nameOf: ({ requestId }) => names.get(requestId ?? '') ?? String(requestId),
    close: provider.close,
  };
};

type Asked = {
  readonly metadata: { readonly call: string; readonly presign_turn: string };
  readonly max_output_tokens: number;
};

const soundOf = (input: number, output: number): Json =>
  usageOf(input, output, {
    input_token_details: { text_tokens: 0, audio_tokens: input },
    output_token_details: { text_tokens: 0, audio_tokens: output },
  });

/** Errors that name a turn and end it before a response. Realtime has no error of the provider's own that is surely free. */
const ERRORS: Readonly<Partial<Record<Fate, string>>> = {
  'bad request': 'invalid_request_error',
  'rate limited': 'rate_limit_error',
  'own error': 'rate_limit_error',
};

const errorOf = (type: string | undefined, event_id: unknown): string =>
  JSON.stringify({ type: 'error', event_id: 'e', error: { type, code: 'x', message: 'no', event_id } });

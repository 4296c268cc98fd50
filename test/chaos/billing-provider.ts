import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Seen, startUpstream, type Upstream } from '../harness/upstream.ts';
import { type Random, seeded } from './random.ts';

/** The price of a model's tokens, in microdollars per million. */
export type Price = { readonly input: number; readonly output: number };

/** How the provider treats a call. */
export type Fate =
  | 'answer' // whole or streamed, as asked, with its usage
  | 'silent' // answers, and reports no usage
  | 'broken' // answers a part and resets the connection
  | 'hung up' // resets the connection before a word
  | 'page' // an intermediary's 502 page
  | 'bad request' // 400
  | 'rate limited' // 429
  | 'own error'; // 500 of the provider itself

/** The provider's own record of a call: its bill. */
export type Billed = {
  readonly fate: Fate;
  /** The cost of the work by the model's price; 0 for a call without work. */
  readonly microusd: number;
  /** The bound in the request. */
  readonly maxTokens: number;
  /** When it came, Unix ms. */
  readonly atMs: number;
  /** How many times the call came: more than once would be a fault. */
  times: number;
};

export type BillingProvider = Upstream & {
  /** Every call has a model of its own, so its row in the ledger is found by it. */
  readonly billed: ReadonlyMap<string, Billed>;
};

export const FATES: Readonly<Record<Fate, number>> = {
  answer: 86,
  silent: 2,
  broken: 3,
  'hung up': 1,
  page: 2,
  'bad request': 2,
  'rate limited': 2,
  'own error': 2,
};

type Options = {
  readonly prices: ReadonlyMap<string, Price>;
  readonly seed: number;
  readonly fates?: Readonly<Record<Fate, number>>;
  /** Longest time a call takes, in ms. */
  readonly slowestMs?: number;
};

/** An OpenAI-like provider that does random work within the bounds of each call and keeps its own books. */
export async function startBillingProvider(options: Options): Promise<BillingProvider> {
  const { prices, seed, fates = FATES, slowestMs = 40 } = options;
  const billed = new Map<string, Billed>();
  const upstream = await startUpstream(async (seen, response) => {
    const body = JSON.parse(seen.body.toString()) as Asked;
    const random = seeded(seed + numberIn(body.model));
    const again = billed.get(body.model);
    if (again) again.times++;
    const price = prices.get(body.model) ?? { input: 0, output: 0 };
    const maxTokens = Number(body.max_completion_tokens);
    const usage = usageOf(seen, maxTokens, random, body.model.startsWith('full'));
    const fate = body.model.startsWith('full') ? 'answer' : random.pick(fates);
    const microusd = WORKLESS.has(fate) ? 0 : costOf(usage, price);
    if (!again) billed.set(body.model, { fate, microusd, maxTokens, atMs: Date.now(), times: 1 });
    await sleep(random.int(0, slowestMs));
    await ANSWERS[fate](response, body, usage, random);
  });
  return { ...upstream, billed };
}

/** The cost of the tokens, rounded up once to a whole microdollar. */
export const costOf = ({ prompt_tokens, completion_tokens }: Usage, { input, output }: Price): number =>
  Number(
    (BigInt(prompt_tokens) * BigInt(input) + BigInt(completion_tokens) * BigInt(output) + 999_999n) /
      1_000_000n,
  );

type Asked = { model: string; stream?: boolean; max_completion_tokens?: number };
type Usage = { prompt_tokens: number; completion_tokens: number; total_tokens: number };

/** Fates in which no paid work was done. */
export const WORKLESS: ReadonlySet<Fate> = new Set(['bad request', 'rate limited', 'own error']);

/** The number in the name of a model. */
export const numberIn = (model: string) => Number(/\d+/.exec(model)?.[0] ?? 0);

/** At most a token for each byte of what the holder said, at most the bound of the output. */
function usageOf({ body }: Seen, maxTokens: number, random: Random, full: boolean): Usage {
  const said = (JSON.parse(body.toString()) as { messages: object[] }).messages;
  const most = Buffer.byteLength(JSON.stringify(said));
  const prompt_tokens = full ? most : random.int(1, most);
  // Its answers have content, so it reports some output.
  const completion_tokens = full ? maxTokens : random.int(1, maxTokens);
  return { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens };
}

type Answering = (
  response: ServerResponse,
  asked: Asked,
  usage: Usage,
  random: Random,
) => void | Promise<void>;

const json = (response: ServerResponse, status: number, body: object) =>
  void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
const error = (message: string) => ({ error: { message, type: 'provider', code: null } });
const choice = { index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' };
const delta = (content: string) => ({ choices: [{ index: 0, delta: { content }, finish_reason: null }] });
const event = (data: object | string) =>
  `data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;

const ANSWERS: Readonly<Record<Fate, Answering>> = {
  answer: (response, asked, usage, random) => answer(response, asked, usage, random),
  silent: (response, asked, _usage, random) => answer(response, asked, undefined, random),
  broken: async (response, { stream }) => {
    response.writeHead(200, { 'content-type': stream ? 'text/event-stream' : 'application/json' });
    response.write(stream ? event(delta('half')) : '{"choices": [');
    await sleep(5);
    response.socket?.resetAndDestroy();
  },
  'hung up': (response) => void response.socket?.resetAndDestroy(),
  page: (response) =>
    void response.writeHead(502, { 'content-type': 'text/html' }).end('<h1>Bad Gateway</h1>'),
  'bad request': (response) => json(response, 400, error('no')),
  'rate limited': (response) => json(response, 429, error('slow down')),
  'own error': (response) => json(response, 500, error('oops')),
};

async function answer(
  response: ServerResponse,
  { model, stream }: Asked,
  usage: Usage | undefined,
  random: Random,
) {
  const told = usage ? { usage } : {};
  if (!stream) return json(response, 200, { id: model, model, choices: [choice], ...told });
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (let i = random.int(1, 4); i > 0; i--) {
    response.write(event({ model, ...delta('word ') }));
    await sleep(random.int(0, 3));
  }
  if (usage) response.write(event({ model, choices: [], usage }));
  response.end(event('[DONE]'));
}

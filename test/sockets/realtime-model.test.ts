import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { thorough } from '../harness/thorough.ts';
import { Books } from './books.ts';
import { type HolderSocket, openSocket } from './holder.ts';
import { type RealtimeProvider, SPEECH, startRealtimeProvider, usageOf } from './realtime-provider.ts';
import type { Json } from './responses-provider.ts';

let provider: RealtimeProvider;
let stack: Stack;
/** Turns whose bound reached the provider lower than it was asked for. */
let narrowed = 0;
beforeAll(async () => {
  provider = await startRealtimeProvider();
  provider.run = ({ asked }) => {
    if (mostOf(asked) < Number((asked.metadata as Json).most ?? 0)) narrowed++;
  };
  const { welcome } = provider;
  provider.welcome = (of) => {
    welcome?.(of);
    const session = provider.sessions.find((each) => each.of === of);
    // A provider bills what it has said, whoever has gone.
    of.socket.once('close', () => {
      for (const { asked } of session?.running.values() ?? [])
        provider.billed += bill(heardAndSaid(WINDOW, mostOf(asked)));
      session?.running.clear();
    });
  };
  stack = await startStack({ providers: { openai: { base_url: provider.url } } });
});
afterAll(async () => {
  await stack.close();
  await provider.close();
});

/** The context window of gpt-realtime, and the most that it writes, in tokens. */
const WINDOW = 32_768;
const MOST_OUTPUT = 4_096;
const LITTLE_OUTPUT = 3_000;
/** The most that a response says, by the bound that the provider received. */
const mostOf = ({ max_output_tokens: most }: Json) => (typeof most === 'number' ? most : MOST_OUTPUT);

/** Sound alone, at the rates of gpt-realtime: 32 microdollars for a token of input, 64 for one of output. */
const heardAndSaid = (input: number, output: number): Json =>
  usageOf(input, output, {
    input_token_details: { text_tokens: 0, audio_tokens: input },
    output_token_details: { text_tokens: 0, audio_tokens: output },
  });
const bill = ({ input_tokens: input = 0, output_tokens: output = 0 }: Json) =>
  Number(input) * 32 + Number(output) * 64;

const DETECTIONS = [
  null,
  { type: 'server_vad' },
  { type: 'server_vad', interrupt_response: false, idle_timeout_ms: 5_000 },
  { type: 'semantic_vad', create_response: true },
  { type: 'semantic_vad', create_response: false },
];

/** Money for whole windows, and for a part of the output of one. */
const moneyFor = (mostWindows: number) =>
  fc
    .tuple(fc.integer({ min: 1, max: mostWindows }), fc.integer({ min: 257, max: LITTLE_OUTPUT }))
    .map(([windows, output]) => windows * WINDOW * 32 + output * 64);
const BOUND = fc.oneof(
  { weight: 3, arbitrary: fc.integer({ min: 257, max: MOST_OUTPUT }) },
  { weight: 1, arbitrary: fc.constantFrom('inf', undefined) },
);

/** The next step of a holder, of the provider, of the network between, or of the owner of the URL. */
const STEP = fc.oneof(
  {
    weight: 18,
    arbitrary: fc.record({
      do: fc.constant('create' as const),
      conversation: fc.constantFrom('auto', 'none', 'none'),
      most: BOUND,
      /** The owner leaves so much money for it. */
      left: fc.option(moneyFor(1), { freq: 2, nil: undefined }),
    }),
  },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('speak' as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('set' as const), detection: fc.nat(4), most: BOUND }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('cancel' as const) }) },
  {
    weight: 18,
    arbitrary: fc.record({
      do: fc.constant('end' as const),
      which: fc.nat(5),
      input: fc.oneof(fc.integer({ min: 1, max: WINDOW }), fc.constant(WINDOW)),
      /** The part of its bound that it says. */
      part: fc.constantFrom(0, 0.1, 1, 1),
      status: fc.constantFrom('completed', 'incomplete', 'failed', 'cancelled'),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('silence' as const), which: fc.nat(5) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('break' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('leave' as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('change' as const),
      limits: fc.oneof(
        moneyFor(4).map((cost_limit) => ({ cost_limit })),
        fc.record({ max_uses: fc.integer({ min: 1, max: 30 }) }),
      ),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('revoke' as const) }) },
);
/** A turn that asks for more output than there is money for. It passes with less only while no other one holds money, as at first. */
const TIGHT = fc.record({
  do: fc.constant('create' as const),
  conversation: fc.constant('auto'),
  most: fc.integer({ min: LITTLE_OUTPUT + 1, max: MOST_OUTPUT }),
  left: moneyFor(1),
});
type Step = typeof STEP extends fc.Arbitrary<infer S> ? S : never;

/** The event of a holder's step. */
function eventOf(step: Step): Json | undefined {
  if (step.do === 'create') {
    const { conversation, most } = step;
    // Without a bound of its own it has the one of its session.
    const metadata = most !== undefined && { most: `${most === 'inf' ? MOST_OUTPUT : most}` };
    return {
      type: 'response.create',
      response: { conversation, max_output_tokens: most, ...(metadata && { metadata }) },
    };
  }
  if (step.do === 'speak') return { type: 'input_audio_buffer.append', audio: SPEECH };
  if (step.do === 'cancel') return { type: 'response.cancel' };
  if (step.do !== 'set') return undefined;
  const audio = { input: { turn_detection: DETECTIONS[step.detection] } };
  return { type: 'session.update', session: { audio, max_output_tokens: step.most } };
}

/** Does a step of the provider to one of the responses under way. */
function atProvider(step: Extract<Step, { which: number }>): void {
  const running = provider.all();
  const one = running[step.which % Math.max(1, running.length)];
  if (!one) return;
  if (step.do === 'end')
    one.end(step.status, heardAndSaid(step.input, Math.floor(step.part * mostOf(one.asked))));
  // It goes on, and nothing more is heard of it.
  else one.end = () => {};
}

/** The holder of a URL. It opens a socket when it needs one. */
class Holder {
  readonly #url: string;
  #socket: HolderSocket | undefined;

  constructor(url: string) {
    this.#url = url;
  }

  /** Sends an event, and waits until everything before it was taken. */
  async send(event: Json): Promise<void> {
    if (this.#socket === undefined || this.#socket.socket.readyState > 1)
      this.#socket = await openSocket(`${this.#url}?model=gpt-realtime`).catch(() => undefined);
    const holder = this.#socket;
    if (!holder) return;
    holder.send(event);
    holder.send({ type: 'response.novelty', event_id: 'last' });
    await holder
      .next(({ error }) => (error as Json | undefined)?.event_id === 'last')
      .catch(() => expect(holder.socket.readyState).toBeGreaterThan(1));
  }

  leave(): void {
    this.#socket?.socket.terminate();
  }
}

test('settled and held money never exceeds the limit at any step, and covers what the provider bills under the bound it got', {
  timeout: 300_000,
}, async () => {
  Object.assign(provider, { bill, usage: () => heardAndSaid(10, 5) });
  const steps = fc
    .tuple(TIGHT, fc.array(STEP, { minLength: 10, maxLength: 30 }))
    .map(([first, rest]): Step[] => [first, ...rest]);
  const billed = () => provider.billed;
  await fc.assert(
    fc.asyncProperty(steps, moneyFor(4), async (all, cost_limit) => {
      Object.assign(provider, { billed: 0, selfBegun: 0 });
      provider.sessions.length = 0;
      const limits = { cost_limit, max_uses: 20 };
      const asked = { provider: 'openai', path: '/v1/realtime', client_api_key: 'sk', sockets: true };
      const { url, grant_id } = await stack.issue({ ...asked, ...limits });
      const [books, holder] = [new Books(stack, grant_id, limits), new Holder(url)];
      for (const step of all) {
        const event = eventOf(step);
        if (step.do === 'create' && step.left !== undefined) await books.leaveMoney(step.left, billed);
        if (event) await holder.send(event);
        else if (step.do === 'leave') holder.leave();
        else if (step.do === 'break') for (const { of } of provider.sessions) of.socket.terminate();
        else if (step.do === 'change') await books.change(step.limits, billed);
        else if (step.do === 'revoke') await books.revoke(billed);
        else if ('which' in step) atProvider(step);
        await books.check(provider.billed);
        expect(provider.selfBegun).toBe(0);
      }
      for (const { of } of provider.sessions) of.socket.terminate();
      holder.leave();
      await eventually(async () => (await books.figures()).held === 0);
      await books.check(provider.billed);
    }),
    { numRuns: thorough ? 60 : 8 },
  );
  // The money that was left has lowered bounds.
  expect(narrowed).toBeGreaterThan(0);
});

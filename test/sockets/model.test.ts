import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { thorough } from '../harness/thorough.ts';
import { Books } from './books.ts';
import { CREATE, type HolderSocket, openSocket } from './holder.ts';
import {
  eventsOf,
  type Json,
  type ProviderSocket,
  type ResponsesProvider,
  startResponsesProvider,
} from './responses-provider.ts';

/** A microdollar for a token of input, two for one of output. */
const RATES = { input: 1_000_000, output: 2_000_000 };
const LANES = ['a', 'b', 'c'];

/** A response under way, as the provider has it. It ends by a step, or by the end of its socket. */
type Running = { readonly event: Json; readonly of: ProviderSocket };

let provider: ResponsesProvider;
let stack: Stack;
let running: Running[] = [];
/** Responses that the provider does not speak of any more. */
let silent: Running[] = [];
let billed = 0;
/** Turns whose bound reached the provider lower than it was asked for. */
let narrowed = 0;
beforeAll(async () => {
  provider = await startResponsesProvider();
  provider.serve = (event, of) => {
    if (receivedOf(event) < Number(event.user)) narrowed++;
    running.push({ event, of });
  };
  // A provider bills what it has written, whoever has gone.
  provider.welcome = (of) =>
    void of.socket.once('close', () => {
      for (const one of [...running, ...silent]) if (one.of === of) billed += bill(receivedOf(one.event));
      running = running.filter((one) => one.of !== of);
      silent = silent.filter((one) => one.of !== of);
    });
  const models = { 'model-x': RATES };
  stack = await startStack({ providers: { openai: { base_url: provider.url, pricing: models } } });
});
afterAll(async () => {
  await stack.close();
  await provider.close();
});

const INPUT = 10;
/** The bill of a response by the provider's own books, in microdollars. */
const bill = (output: number) => INPUT + 2 * output;
/** The most that the provider writes, by the bound that it received. */
const receivedOf = ({ max_output_tokens: most }: Json) => (typeof most === 'number' ? most : 8_000);
/** The bound of a turn that has none (`readOutputBound`). */
const OMITTED = 4_096;

const which = fc.nat(5);
/** The next step of a holder, of the provider, of the network between, or of the owner of the URL. */
const STEP = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('send' as const),
      lane: fc.nat(2),
      most: fc.oneof(fc.integer({ min: 257, max: 5_000 }), fc.constant(undefined)),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('end' as const),
      which,
      /** The part of its bound that it writes. */
      part: fc.constantFrom(0, 0.1, 1, 1),
      type: fc.constantFrom('response.completed', 'response.incomplete', 'response.failed'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('refuse' as const), which }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('silence' as const), which }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('break' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('leave' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('change' as const),
      limits: fc.oneof(
        fc.record({ cost_limit: fc.integer({ min: 500, max: 25_000 }) }),
        fc.record({ max_uses: fc.integer({ min: 1, max: 30 }) }),
      ),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('revoke' as const) }) },
);
type Step = typeof STEP extends fc.Arbitrary<infer S> ? S : never;

/** Does a step of the provider to one of the responses under way. */
function atProvider(step: Extract<Step, { which: number }>): void {
  const [one] = running.splice(step.which % Math.max(1, running.length), 1);
  if (!one) return;
  if (step.do === 'silence') return void silent.push(one);
  const { socket } = one.of;
  const { stream_id } = one.event;
  if (step.do === 'refuse') {
    const error = { code: 'x', message: 'x' };
    socket.send(JSON.stringify({ type: 'error', status: 400, error, stream_id }));
    return;
  }
  const output = Math.floor(step.part * receivedOf(one.event));
  billed += bill(output);
  for (const each of eventsOf(one.event, { input: INPUT, output, type: step.type }))
    socket.send(JSON.stringify(each));
}

/** The holder of a URL. It opens a socket when it needs one. */
class Holder {
  readonly #url: string;
  #socket: HolderSocket | undefined;

  constructor(url: string) {
    this.#url = url;
  }

  /** Sends a turn, and waits until the provider has it, or it is refused. */
  async send(lane: number, most: number | undefined): Promise<void> {
    if (this.#socket === undefined || this.#socket.socket.readyState > 1)
      this.#socket = await openSocket(this.#url).catch(() => undefined);
    const holder = this.#socket;
    if (!holder) return;
    const before = provider.frames().length + holder.events.length;
    const stream_id = LANES[lane];
    holder.send({
      ...{ ...CREATE, model: 'model-x', stream_id, user: `${most ?? OMITTED}` },
      max_output_tokens: most,
    });
    await eventually(
      async () => provider.frames().length + holder.events.length > before || holder.socket.readyState > 1,
    );
  }

  leave(): void {
    this.#socket?.socket.terminate();
  }
}

test('settled and held money never exceeds the limit at any step, and covers what the provider bills under the bound it got', {
  timeout: 300_000,
}, async () => {
  const steps = fc.array(STEP, { minLength: 10, maxLength: 30 });
  await fc.assert(
    fc.asyncProperty(steps, fc.integer({ min: 800, max: 15_000 }), async (all, cost_limit) => {
      [running, silent, billed] = [[], [], 0];
      const limits = { cost_limit, max_uses: 20 };
      const asked = { provider: 'openai', path: '/v1/responses', client_api_key: 'sk', sockets: true };
      const { url, grant_id } = await stack.issue({ ...asked, ...limits });
      const [books, holder] = [new Books(stack, grant_id, limits), new Holder(url)];
      for (const step of all) {
        if (step.do === 'send') await holder.send(step.lane, step.most);
        else if (step.do === 'leave') holder.leave();
        else if (step.do === 'break') for (const { socket } of provider.sockets) socket.terminate();
        else if (step.do === 'change') await books.change(step.limits, () => billed);
        else if (step.do === 'revoke') await books.revoke(() => billed);
        else atProvider(step);
        await books.check(billed);
      }
      for (const { socket } of provider.sockets) socket.terminate();
      holder.leave();
      await eventually(async () => (await books.figures()).held === 0);
      await books.check(billed);
      provider.sockets.length = 0;
    }),
    { numRuns: thorough ? 60 : 12 },
  );
  // The money that was left has lowered bounds.
  expect(narrowed).toBeGreaterThan(0);
});

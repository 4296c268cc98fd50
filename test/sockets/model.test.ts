import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { thorough } from '../harness/thorough.ts';
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

/** A response under way, as the provider has it. */
type Running = { readonly event: Json; readonly of: ProviderSocket };

let provider: ResponsesProvider;
let stack: Stack;
let running: Running[] = [];
beforeAll(async () => {
  provider = await startResponsesProvider();
  provider.serve = (event, of) => void running.push({ event, of });
  const models = { 'model-x': RATES };
  stack = await startStack({ providers: { openai: { base_url: provider.url, pricing: models } } });
});
afterAll(async () => {
  await stack.close();
  await provider.close();
});

/** The bill of a response by the provider's own books, in microdollars. It is at most what was asked for. */
const bill = (input: number, output: number) => input + 2 * output;

/** The next step: a holder sends a turn, the provider ends one in some way, a holder leaves or comes back, or the limit changes. */
const STEP = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('send' as const),
      lane: fc.nat(2),
      most: fc.integer({ min: 16, max: 60 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('end' as const),
      which: fc.nat(5),
      output: fc.nat(16),
      type: fc.constantFrom('response.completed', 'response.incomplete', 'response.failed'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('refuse' as const), which: fc.nat(5) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('silence' as const), which: fc.nat(5) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('break' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('leave' as const) }) },
);
type Step = typeof STEP extends fc.Arbitrary<infer S> ? S : never;

const statusOf = async (url: string) =>
  (await (await fetch(url.replace(/\/v1\/responses$/, ''))).json()) as {
    used: number;
    spent: number;
    held: number;
  };

test('settled and held are at most the limit at each step, and cover what the provider bills', {
  timeout: 300_000,
}, async () => {
  const steps = fc.array(STEP, { minLength: 5, maxLength: 25 });
  await fc.assert(
    fc.asyncProperty(steps, fc.integer({ min: 600, max: 6_000 }), async (all, limit) => {
      running = [];
      const asked = { provider: 'openai', path: '/v1/responses', client_api_key: 'sk', sockets: true };
      const { url } = await stack.issue({ ...asked, cost_limit: limit });
      let billed = 0;
      let holder: HolderSocket | undefined;
      const check = async () => {
        const { spent, held } = await statusOf(url);
        expect(spent + held).toBeLessThanOrEqual(limit);
        expect(spent + held).toBeGreaterThanOrEqual(billed);
      };
      const act = async (step: Step) => {
        if (step.do === 'send') {
          if (holder === undefined || holder.socket.readyState > 1)
            holder = await openSocket(url).catch(() => undefined);
          const before = running.length + (holder?.events.length ?? 0);
          holder?.send({
            ...CREATE,
            model: 'model-x',
            stream_id: LANES[step.lane],
            max_output_tokens: step.most,
          });
          if (holder) await eventually(async () => running.length + (holder?.events.length ?? 0) > before);
          return;
        }
        if (step.do === 'leave') return void holder?.socket.terminate();
        if (step.do === 'break') {
          for (const { socket } of provider.sockets) socket.terminate();
          running = [];
          return;
        }
        const [one] = running.splice(step.which % Math.max(1, running.length), 1);
        if (!one || step.do === 'silence') return;
        const { socket } = one.of;
        const { stream_id } = one.event;
        if (step.do === 'refuse') {
          socket.send(
            JSON.stringify({ type: 'error', status: 400, error: { code: 'x', message: 'x' }, stream_id }),
          );
          return;
        }
        const { output, type } = step;
        if (socket.readyState === 1) billed += bill(10, output);
        for (const each of eventsOf(one.event, { input: 10, output, type }))
          socket.send(JSON.stringify(each));
      };
      for (const step of all) {
        await act(step);
        await check();
      }
      for (const { socket } of provider.sockets) socket.terminate();
      holder?.socket.terminate();
      await eventually(async () => (await statusOf(url)).held === 0);
      await check();
      provider.sockets.length = 0;
    }),
    { numRuns: thorough ? 60 : 8 },
  );
});

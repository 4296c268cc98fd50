import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { thorough } from '../harness/thorough.ts';
import { type HolderSocket, openSocket } from './holder.ts';
import { type RealtimeProvider, SPEECH, startRealtimeProvider, usageOf } from './realtime-provider.ts';
import type { Json } from './responses-provider.ts';

let provider: RealtimeProvider;
let stack: Stack;
beforeAll(async () => {
  provider = await startRealtimeProvider();
  provider.run = () => {};
  stack = await startStack({ providers: { openai: { base_url: provider.url } } });
});
afterAll(async () => {
  await stack.close();
  await provider.close();
});

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

/** The next step of a holder, of the provider, or of the network between. */
const STEP = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('create' as const),
      conversation: fc.constantFrom('auto', 'none'),
      most: fc.integer({ min: 16, max: 4_096 }),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('speak' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('set' as const), detection: fc.nat(4) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('cancel' as const) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('end' as const),
      which: fc.nat(5),
      input: fc.integer({ min: 1, max: 32_768 }),
      output: fc.nat(16),
      status: fc.constantFrom('completed', 'incomplete', 'failed', 'cancelled'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('silence' as const), which: fc.nat(5) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('break' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('leave' as const) }) },
);
type Step = typeof STEP extends fc.Arbitrary<infer S> ? S : never;

const statusOf = async (url: string) =>
  (await (await fetch(url.replace(/\/v1\/realtime$/, ''))).json()) as { spent: number; held: number };

/** Sends an event, and waits until everything before it was taken. */
async function sendAll(holder: HolderSocket, event: Json): Promise<void> {
  holder.send(event);
  holder.send({ type: 'response.novelty', event_id: 'last' });
  await holder
    .next(({ error }) => (error as Json | undefined)?.event_id === 'last')
    .catch(() => expect(holder.socket.readyState).toBeGreaterThan(1));
}

test('settled and held are at most the limit at each step, and cover what the provider bills', {
  timeout: 300_000,
}, async () => {
  Object.assign(provider, { bill, usage: () => heardAndSaid(10, 5) });
  const steps = fc.array(STEP, { minLength: 5, maxLength: 25 });
  await fc.assert(
    fc.asyncProperty(steps, fc.integer({ min: 1_400_000, max: 9_000_000 }), async (all, limit) => {
      Object.assign(provider, { billed: 0, selfBegun: 0 });
      provider.sessions.length = 0;
      const asked = { provider: 'openai', path: '/v1/realtime', client_api_key: 'sk', sockets: true };
      const { url } = await stack.issue({ ...asked, cost_limit: limit });
      let holder: HolderSocket | undefined;
      const check = async () => {
        const before = provider.billed;
        const { spent, held } = await statusOf(url);
        expect(spent + held).toBeLessThanOrEqual(limit);
        expect(spent + held).toBeGreaterThanOrEqual(before);
        expect(provider.selfBegun).toBe(0);
      };
      const ofHolder = async (step: Step): Promise<Json | undefined> => {
        if (step.do === 'create')
          return {
            type: 'response.create',
            response: { conversation: step.conversation, max_output_tokens: step.most },
          };
        if (step.do === 'speak') return { type: 'input_audio_buffer.append', audio: SPEECH };
        if (step.do === 'cancel') return { type: 'response.cancel' };
        if (step.do !== 'set') return undefined;
        const turn_detection = DETECTIONS[step.detection];
        return { type: 'session.update', session: { audio: { input: { turn_detection } } } };
      };
      const act = async (step: Step) => {
        const event = await ofHolder(step);
        if (event) {
          if (holder === undefined || holder.socket.readyState > 1)
            holder = await openSocket(`${url}?model=gpt-realtime`).catch(() => undefined);
          if (holder) await sendAll(holder, event);
          return;
        }
        if (step.do === 'leave') return void holder?.socket.terminate();
        if (step.do === 'break') {
          for (const { of, running } of provider.sessions) {
            running.clear();
            of.socket.terminate();
          }
          return;
        }
        const running = provider.all();
        const one = 'which' in step ? running[step.which % Math.max(1, running.length)] : undefined;
        if (!one) return;
        if (step.do === 'end') {
          const { max_output_tokens: most } = one.asked;
          const output = Math.min(step.output, Number(most));
          // A socket that is gone bills nothing more.
          if (one.session.of.socket.readyState === 1) one.end(step.status, heardAndSaid(step.input, output));
        } else one.session.running.delete(one.id);
      };
      for (const step of all) {
        await act(step);
        await check();
      }
      for (const { of, running } of provider.sessions) {
        running.clear();
        of.socket.terminate();
      }
      holder?.socket.terminate();
      await eventually(async () => (await statusOf(url)).held === 0);
      await check();
    }),
    { numRuns: thorough ? 60 : 8 },
  );
});

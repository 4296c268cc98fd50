import { BUNDLED_PRICES, type JsonObject, loadProviders } from '@presign/providers';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { NO_RULES } from '../src/grant/call-rules.ts';
import { splice } from '../src/json/splice.ts';
import { type Content, MODEST, readContent, scanBody } from '../src/llm/body.ts';
import { planCall } from '../src/llm/plan.ts';
import { textOf } from './text-of.ts';

const LONG = 'long '.repeat(8_000);
const AT = { prices: BUNDLED_PRICES, now: Date.parse('2026-11-29T12:00:00Z') };
const providers = loadProviders('{"azure-openai": {"base_url": "https://x.openai.azure.com"}}');

/** The JSON of a large body of a call without limits. */
function read(text: string): Content | undefined {
  const raw = Buffer.from(text);
  const scan = scanBody(raw, 'may', NO_RULES.names, MODEST);
  const content = readContent(raw, 'may', scan);
  return 'content' in content ? content.content : undefined;
}

const messages = [{ role: 'user', content: LONG }];
const CALLS: readonly [provider: string, path: string, body: JsonObject][] = [
  ['openai', '/v1/chat/completions', { model: 'gpt-4o-mini', messages, stream: true }],
  ['openai', '/v1/chat/completions', { messages, model: 'gpt-4o-mini', stream: true, stream_options: {} }],
  ['openai', '/v1/completions', { model: 'gpt-3.5-turbo-instruct', prompt: LONG, echo: true }],
  ['openai', '/v1/responses', { model: 'gpt-5', input: LONG, stream: true }],
  ['openai', '/v1/embeddings', { model: 'text-embedding-3-small', input: [LONG] }],
  ['openai', '/v1/images/generations', { model: 'gpt-image-1', prompt: LONG, stream: true }],
  ['openai', '/v1/audio/speech', { model: 'gpt-4o-mini-tts', input: LONG, voice: 'alloy' }],
  ['anthropic', '/v1/messages', { model: 'claude-haiku-4-5', max_tokens: 9, messages, stream: true }],
  ['google', '/v1beta/models/gemini-2.5-flash:generateContent', { contents: [{ parts: [{ text: LONG }] }] }],
  ['cohere', '/v2/chat', { model: 'command-a-03-2025', messages, stream: true }],
  ['groq', '/openai/v1/chat/completions', { model: 'llama-3.3-70b-versatile', messages, stream: true }],
  ['fireworks', '/inference/v1/completions', { model: 'm', prompt: LONG, echo_last: 3, stream: true }],
  [
    'azure-openai',
    '/openai/v1/chat/completions',
    { model: 'gpt-4o-mini', messages, stream: true, data_sources: [{ type: 'azure_search', key: LONG }] },
  ],
];

describe('a large body of a call without limits', () => {
  test.each(CALLS)('of %s on %s is planned like one that is parsed whole', (id, path, body) => {
    const provider = providers.get(id);
    if (!provider) throw new Error(id);
    const text = JSON.stringify(body);
    const content = read(text);
    const planned = [content, { raw: content?.raw ?? null, json: body, scan: content?.scan }].map((each) => {
      const plan = planCall({
        ...{ grant: { provider, method: 'POST' }, target: { path, query: '' }, rules: NO_RULES, at: AT },
        ...{ limited: { costLimited: false }, content: each as Content },
      });
      if ('refusal' in plan) throw new Error(plan.refusal.code);
      const { model, streams, echoes, dropsUsageEvent, rewritten, spend, pricing, bodyFor } = plan.plan;
      const sent = JSON.parse(textOf(bodyFor(0))) as unknown;
      return { model, streams, echoes, dropsUsageEvent, rewritten, spend, pricing, sent };
    });
    // Long members are not parsed.
    expect(JSON.stringify(content?.json).length).toBeLessThan(1_000);
    expect(planned[0]).toEqual(planned[1]);
    expect(planned[0]?.model).toBeDefined();
  });

  const OTHERS = [
    '',
    '[1]',
    'null',
    '{',
    `{"a":"${LONG}"`,
    `{"a":"${LONG}"} x`,
    `x {"a":"${LONG}"}`,
    `{"a":"${LONG}"}{"model":"b"}`,
    `{"a":"${LONG}","model":"b" "c"}`,
    `{"a":"${LONG}","model":b}`,
    `{"a":"${LONG}","a":1}`,
    `[{"model":"a","b":"${LONG}"}]`,
  ];
  test.each(OTHERS.map((text) => [text.replace(LONG, '…'), text]))('that is %s is not read', (_, text) => {
    expect(read(text.padEnd(20_000, ' '))?.json).toBeUndefined();
  });

  test('has the value of each short member, and is sent unchanged except for the members that are added', () => {
    const value = fc.oneof(fc.jsonValue(), fc.constant(LONG), fc.constant([{ text: LONG }]));
    const name = fc.oneof(
      fc.string({ maxLength: 8 }),
      fc.constantFrom('__proto__', 'model', '"', '\u00e9\\'),
    );
    const arbitrary = fc.tuple(
      fc.uniqueArray(fc.tuple(name, value), { minLength: 1, maxLength: 6, selector: ([key]) => key }),
      fc.constantFrom(0, 2),
    );
    fc.assert(
      fc.property(arbitrary, ([entries, indent]) => {
        const whole = Object.fromEntries([...entries, ['z', LONG]]);
        const content = read(JSON.stringify(whole, null, indent));
        const parsed = JSON.parse(JSON.stringify(whole)) as JsonObject;
        if (!content?.json || !content.scan || !(content.raw instanceof Buffer)) throw new Error('not read');
        expect(Object.keys(content.json)).toEqual(Object.keys(parsed));
        for (const [key, of] of Object.entries(parsed))
          if (JSON.stringify(of).length < 300) expect(content.json[key]).toEqual(of);
        const came = { raw: content.raw, json: content.json, scan: content.scan };
        const sent = Buffer.concat(
          splice(came, { ...content.json, stream_options: { include_usage: true } }),
        );
        expect(JSON.parse(String(sent))).toEqual({ ...parsed, stream_options: { include_usage: true } });
      }),
      { numRuns: 300 },
    );
  });
});

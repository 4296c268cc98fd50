import { BUNDLED_PRICES, dialectOf, loadProviders, spendOf } from '@presign/providers';
import type { JsonObject } from '@presign/schema';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compileRules, NO_RULES } from '../src/grant/call-rules.ts';
import { KnownValues } from '../src/json/known-values.ts';
import { MODEST, scanBody } from '../src/llm/body.ts';
import { planLight, planRead, scanToPlan } from '../src/llm/plan-read.ts';
import { textOf } from './text-of.ts';

/** `pnpm test` and `pnpm test:all`. fast-check prints the seed and the path of a failure. */
const RUNS = process.env.TEST_ALL ? 5_000 : 300;

const providers = loadProviders(
  '{"openai": {"harmless_fields": ["messages[].kept", "messages[].content[].type=kept", "input[].kept"]}}',
);
const AT = { prices: BUNDLED_PRICES, now: Date.parse('2026-11-30T12:00:00Z') };

/** Where a dialect's texts may be left out, and one where they may not. */
const ENDPOINTS = [
  ['openai', '/v1/chat/completions', 'gpt-4o-mini'],
  ['openai', '/v1/responses', 'gpt-4o-mini'],
  ['groq', '/openai/v1/chat/completions', 'llama-3.3-70b-versatile'],
  ['mistral', '/v1/chat/completions', 'mistral-large-latest'],
  ['openrouter', '/api/v1/messages', 'anthropic/claude-sonnet-4.5'],
  ['anthropic', '/v1/messages', 'claude-sonnet-4-5'],
  ['google', '/v1beta/models/gemini-2.5-flash:generateContent', undefined],
  ['cohere', '/v2/chat', 'command-a-03-2025'],
] as const;

const pieces = fc.constantFrom(
  ...['x'.repeat(509), 'word '.repeat(200), '\\n', '\\"', '→', 'é', '…', '\u0315\u0316'.repeat(40), '<&>'],
  ...['😀', '\\u2026', '\\ud83d\\ude00', '{\\"a\\":1e15}', 'data:image/png;base64,AAAA', ''],
);
const flaws = fc.constantFrom('\n', '\\x', '\\u12g4', '"', '\u0000');
/** A text as JSON, and now and then no JSON. */
const quoted = fc
  .array(fc.oneof({ weight: 200, arbitrary: pieces }, { weight: 1, arbitrary: flaws }), { maxLength: 5 })
  .map((all) => `"${all.join('')}"`);
const object = (members: fc.Arbitrary<readonly (readonly [string, string])[]>) =>
  members.map((all) => `{${all.map(([name, value]) => `"${name}":${value}`).join(',')}}`);
const list = (each: fc.Arbitrary<string>) =>
  fc.array(each, { maxLength: 3 }).map((all) => `[${all.join(',')}]`);
const optional = (name: string, value: fc.Arbitrary<string>) =>
  fc.option(
    value.map((written) => [name, written] as const),
    { nil: undefined },
  );
const some = (...members: readonly fc.Arbitrary<readonly [string, string] | undefined>[]) =>
  object(fc.tuple(...members).map((all) => all.filter((member) => member !== undefined)));

const kinds = fc.constantFrom(
  ...[
    'text',
    'input_text',
    'output_text',
    'tool_result',
    'tool_use',
    'document',
    'thinking',
    'search_result',
  ],
  ...['image_url', 'image', 'refusal', 'kept', 'unknown', 'function_call_output', 'message', 'reasoning'],
);
const kind = fc
  .oneof({ weight: 3, arbitrary: fc.constant('text') }, kinds)
  .map((name) => JSON.stringify(name));
const small = some(optional('text', quoted), optional('content', quoted), optional('url', quoted));
const part: fc.Arbitrary<string> = some(
  kind.map((value) => ['type', value] as const),
  optional('text', quoted),
  fc
    .boolean()
    .chain((has) => (has ? optional('content', fc.oneof(quoted, list(small))) : fc.constant(undefined))),
  fc.boolean().chain((has) => (has ? optional('input', small) : fc.constant(undefined))),
  fc
    .boolean()
    .chain((has) => (has ? optional('image_url', fc.oneof(small, quoted)) : fc.constant(undefined))),
);
const textPart = quoted.map((text) => `{"type":"text","text":${text}}`);
const content = fc.oneof(quoted, list(textPart), list(part), list(part));
const rare = (name: string, value: fc.Arbitrary<string>) =>
  fc
    .nat(9)
    .chain((n) => (n === 0 ? value.map((written) => [name, written] as const) : fc.constant(undefined)));
const message = some(
  fc.constantFrom('user', 'assistant', 'system', 'tool').map((role) => ['role', `"${role}"`] as const),
  fc.oneof(
    { weight: 9, arbitrary: content.map((value) => ['content', value] as const) },
    fc.constant(undefined),
  ),
  rare('type', kind),
  rare('output', content),
  rare('kept', content),
  rare('content', quoted),
  rare('parts', list(small)),
  rare('arguments', quoted),
  rare(
    'tool_calls',
    quoted.map((text) => `[{"type":"function","function":{"name":"f","arguments":${text}}}]`),
  ),
);

const WORDS = 'A few words that fill a body. '.repeat(600);
const LONG = `{"role":"user","content":"${WORDS}"}`;
const messages = fc.array(message, { maxLength: 4 }).map((all) => `[${[LONG, ...all].join(',')}]`);

/** Definitions of tools as an agent repeats them, and now and then as no agent writes them. */
const SCHEMAS = [
  '{"type":"object","properties":{"path":{"type":"string","description":"The path of the file"}}}',
  ` { "type" : "object",\n "maximum": 1e20, "description":"caf\\u00e9 \\ud83d\\ude00 é <b> ${'word '.repeat(200)}" }`,
  `${'{"items":'.repeat(60)}1${'}'.repeat(60)}`,
  '{ "type" : "object" , "title": "caf\\u00e9 \\u003cb\\u003e" }',
  '{"type":"object","type":"string"}',
  '{"type":"object",}',
  '{"enum":[1E3,-0.5e-7,true,null,"e1"]}',
];
const SHAPES: Readonly<Record<string, (about: string, schema: string) => string>> = {
  responses: (about, schema) =>
    `{"type":"function","name":"f","description":${about},"parameters":${schema},"strict":false}`,
  messages: (about, schema) => `{"name":"f","description":${about},"input_schema":${schema}}`,
  gemini: (about, schema) =>
    `{"functionDeclarations":[{"name":"f","description":${about},"parametersJsonSchema":${schema}}]}`,
  chat: (about, schema) =>
    `{"type":"function","function":{"name":"f","description":${about},"parameters":${schema}}}`,
};
function toolsOf(path: string) {
  const own =
    Object.keys(SHAPES).find((name) => path.endsWith(name)) ?? (path.includes(':') ? 'gemini' : 'chat');
  const schema = fc.oneof({ weight: 9, arbitrary: fc.constant(SCHEMAS[0]) }, fc.constantFrom(...SCHEMAS));
  const toolOf = SHAPES[own];
  const about = fc.constantFrom(`"${'Reads a file. '.repeat(40)}"`, '"Writes → a file."');
  return fc
    .array(fc.tuple(about, schema), { minLength: 1, maxLength: 6 })
    .map((all) => `[${all.map(([text, written]) => toolOf?.(text, written ?? '{}')).join(',')}]`)
    .map((written) => ['tools', written] as const);
}

const TOP = ['messages', 'input', 'contents'] as const;
const bodyOf = (model: string | undefined, path: string) =>
  some(
    fc.constant(model === undefined ? undefined : (['model', JSON.stringify(model)] as const)),
    fc.constantFrom(...TOP).chain((name) => {
      const own = path.endsWith('/responses') ? 'input' : path.includes(':') ? 'contents' : 'messages';
      return fc.nat(9).chain((n) => messages.map((value) => [n === 0 ? name : own, value] as const));
    }),
    optional('max_tokens', fc.constantFrom('9', '90')),
    rare('system', content),
    rare('instructions', quoted),
    fc.nat(3).chain((n) => (n === 0 ? fc.constant(undefined) : toolsOf(path))),
    rare('tools', fc.constantFrom('[]', '{}', '{"a":[1,2]}', `[${'1,'.repeat(800)}1e3]`)),
    rare('stream', fc.constant('true')),
    rare('metadata', fc.constant('{"a":1e20}')),
    rare('messages', messages),
    rare('echo', quoted),
  );

const configs = fc.constantFrom<JsonObject | undefined>(
  ...[undefined, undefined, undefined, { max_tokens: 5 }, { system: 'Be brief.' }, { messages: [] }],
  ...[{ instructions: 'Be brief.' }, { generationConfig: { temperature: 1 } }, { input: 'Hi' }],
);
const limits = fc.constantFrom(
  ...[
    { costLimited: true, tokenLimited: false },
    { costLimited: true, tokenLimited: true },
  ],
  ...[
    { costLimited: false, tokenLimited: true },
    { costLimited: false, tokenLimited: false },
  ],
);

/** A plan as data, with the bytes that it sends, or the refusal. */
function shown(planned: ReturnType<typeof planRead>) {
  if (!planned) throw new Error('it is not read');
  if ('refusal' in planned) return planned;
  const { bodyFor, spend, answeredBy: _, ...data } = planned.plan;
  return { ...data, isMetered: spend !== undefined, sent: textOf(bodyFor(data.askedTokens)) };
}

/** All that a scan finds but the values, whether some are known or none. */
const figures = (scan: ReturnType<typeof scanBody>) =>
  'excess' in scan ? scan : { ...scan, values: undefined };

const knownIn = (scan: ReturnType<typeof scanBody>) =>
  'excess' in scan ? 0 : scan.values.filter(({ known }) => known).length;

describe.each(ENDPOINTS)('%s %s', (id, path, model) => {
  const provider = providers.get(id);
  if (!provider) throw new Error(id);
  const grant = { provider, method: 'POST' };
  const target = { path, query: '' };
  const mayLeaveOut = spendOf(provider, path)?.unreadTexts !== undefined;

  test('a body without its long texts is planned and sent as the whole body is', () => {
    let [light, found] = [0, 0];
    fc.assert(
      fc.property(bodyOf(model, path), configs, limits, (text, config, limited) => {
        const rules = config ? compileRules({ config }, dialectOf(provider, path)) : NO_RULES;
        const asked = { grant, target, rules, limited, at: AT };
        const raw = Buffer.from(text);
        const whole = shown(planRead(raw, 'must', asked, scanBody(raw, 'must', rules.names, MODEST)));
        const scan = scanToPlan(raw, 'must', asked, MODEST);
        expect(shown(planRead(raw, 'must', asked, scan))).toEqual(whole);
        if (planLight(raw, asked, scan) !== undefined) light++;
        // For the first time its tools are kept, and for the second they are known.
        const known = new KnownValues(2 ** 24).of('a');
        for (const _ of [1, 2]) {
          const again = scanToPlan(raw, 'must', { ...asked, known }, MODEST);
          expect(figures(again)).toEqual(figures(scan));
          expect(shown(planRead(raw, 'must', { ...asked, known }, again))).toEqual(whole);
          found += knownIn(again);
        }
      }),
      { numRuns: RUNS },
    );
    if (mayLeaveOut) expect(light).toBeGreaterThan(RUNS / 50);
    else expect(light).toBe(0);
    expect(found).toBeGreaterThan(0);
  });

  test('bytes near those of a body are planned, sent and refused alike', () => {
    const change = fc.tuple(fc.nat(), fc.uint8Array({ maxLength: 3 }), fc.nat(3));
    fc.assert(
      fc.property(bodyOf(model, path), fc.array(change, { minLength: 1, maxLength: 2 }), (text, changes) => {
        const known = new KnownValues(2 ** 24).of('a');
        const asked = { grant, target, rules: NO_RULES, limited: LIMITED, at: AT, known };
        const unchanged = Buffer.from(text);
        planRead(unchanged, 'must', asked, scanToPlan(unchanged, 'must', asked, MODEST));
        const raw = changes.reduce((bytes: Buffer, [at, to, cut]) => {
          const from = at % (bytes.length + 1);
          return Buffer.concat([bytes.subarray(0, from), to, bytes.subarray(from + cut)]);
        }, unchanged);
        const whole = planRead(raw, 'must', asked, scanBody(raw, 'must', NO_RULES.names, MODEST));
        const light = planRead(raw, 'must', asked, scanToPlan(raw, 'must', asked, MODEST));
        expect(shown(light)).toEqual(shown(whole));
      }),
      { numRuns: RUNS },
    );
  });
});

const LIMITED = { costLimited: true, tokenLimited: false };

describe('a body is read whole', () => {
  const path = '/v1/chat/completions';
  const provider = providers.get('openai');
  if (!provider) throw new Error('openai');
  const grant = { provider, method: 'POST' };
  const raw = Buffer.from(`{"model":"gpt-4o-mini","messages":[${LONG}]}`);
  const asked = { grant, target: { path, query: '' }, rules: NO_RULES, limited: LIMITED, at: AT };

  test('when a config replaces a member that has long texts', () => {
    const rules = compileRules({ config: { messages: [] } }, dialectOf(provider, path));
    const replaced = { ...asked, rules, limited: { costLimited: false, tokenLimited: false } };
    const scan = scanToPlan(raw, 'must', replaced, MODEST);
    expect(planLight(raw, asked, scan) !== undefined).toBe(true);
    expect(planLight(raw, replaced, scan) !== undefined).toBe(false);
    expect(shown(planRead(raw, 'must', replaced, scan))).toMatchObject({
      sent: '{"model":"gpt-4o-mini","messages":[]}',
    });
  });
});

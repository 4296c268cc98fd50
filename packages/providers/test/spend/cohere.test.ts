import { describe, expect, it } from 'vitest';
import { boundOf, costsAsListed, endpoint, FACTS, refusedField, streamed } from './native-call.ts';

const V2 = endpoint('cohere', '/v2/chat');
const V1 = endpoint('cohere', '/v1/chat');
const EMBED = endpoint('cohere', '/v2/embed').spend;
const RERANK = endpoint('cohere', '/v2/rerank');
const UNITS = {
  billed_units: { input_tokens: 17, output_tokens: 12 },
  tokens: { input_tokens: 83, output_tokens: 14 },
};

const ANSWER = {
  id: 'a',
  finish_reason: 'COMPLETE',
  message: { role: 'assistant', content: [{ type: 'text', text: 'Hi' }] },
  usage: { ...UNITS, cached_tokens: 16 },
};

describe('usage of Cohere', () => {
  it('is the billed units without the template, and costs what the price list computes', () => {
    const reported = V2.spend.readAnswer(ANSWER);
    expect(reported?.usage).toEqual({ input_tokens: 17, output_tokens: 12 });
    costsAsListed('cohere', 'command-a-03-2025', reported, ANSWER);
  });

  it('is that of embeddings', () => {
    const answer = {
      id: 'e',
      embeddings: { float: [[1]] },
      meta: { billed_units: { input_tokens: 3, images: 0 } },
    };
    expect(EMBED.readAnswer(answer)?.usage).toEqual({ input_tokens: 3, output_tokens: 0 });
    costsAsListed('cohere', 'embed-v4.0', EMBED.readAnswer(answer), answer, 'embeddings');
  });

  it('of a rerank is its searches', () => {
    const answer = { id: 'r', results: [], meta: { billed_units: { search_units: 2 } } };
    expect(RERANK.spend.readAnswer(answer)?.usage).toEqual({ rerank_searches: 2 });
  });

  it.each([
    ['without units', {}],
    ['with images', { meta: { billed_units: { input_tokens: 1, images: 1 } } }],
    ['with tokens of images', { meta: { billed_units: { input_tokens: 1, image_tokens: 9 } } }],
    [
      "with a connector's searches",
      { meta: { billed_units: { input_tokens: 1, output_tokens: 1, search_units: 1 } } },
    ],
    ['with a count below 0', { usage: { billed_units: { input_tokens: -1, output_tokens: 1 } } }],
  ])('is unknown %s', (_what, answer) => {
    expect(V2.spend.readAnswer(answer)?.usage).toBeUndefined();
  });
});

const V2_EVENTS = [
  { type: 'message-start', id: 'a', delta: { message: { role: 'assistant', content: [] } } },
  { type: 'content-delta', index: 0, delta: { message: { content: { text: 'Hi' } } } },
  { type: 'message-end', id: 'a', delta: { finish_reason: 'COMPLETE', usage: UNITS } },
];
const V1_EVENTS = [
  { is_finished: false, event_type: 'stream-start', generation_id: 'g' },
  { is_finished: false, event_type: 'text-generation', text: 'Hi' },
  {
    is_finished: true,
    event_type: 'stream-end',
    finish_reason: 'COMPLETE',
    response: { text: 'Hi', meta: UNITS },
  },
];

describe('a stream of Cohere v1', () => {
  it('costs what the price list computes from the whole answer in its last event', () => {
    const whole = V1_EVENTS[2]?.response;
    const reported = streamed(V1, V1_EVENTS);
    expect(reported).toEqual(V1.spend.readAnswer(whole));
    // The price list knows the units as v2 names them: `meta` of v1 is `usage` there.
    costsAsListed('cohere', 'command-r-08-2024', reported, { ...whole, usage: whole?.meta });
  });
});

describe.each([
  ['v2', V2, V2_EVENTS],
  ['v1', V1, V1_EVENTS],
] as const)('usage of a stream of Cohere %s', (_version, endpointOf, events) => {
  it('is in its last event', () => {
    expect(streamed(endpointOf, [...events, '[DONE]'])?.usage).toEqual({
      input_tokens: 17,
      output_tokens: 12,
    });
  });

  it('is unknown until then, and after an error', () => {
    for (let cut = 0; cut < events.length; cut++)
      expect(streamed(endpointOf, events.slice(0, cut))).toBeUndefined();
    expect(streamed(endpointOf, [{ message: 'internal server error' }, ...events])).toBeUndefined();
  });
});

const SAID = { model: 'command-a-03-2025', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 100 };
const said = (fields: object) => ({ ...SAID, ...fields });

describe('the bound of a Cohere chat', () => {
  it('is at most a token for each byte, and max_tokens', () => {
    expect(boundOf(V2, SAID)).toEqual({
      inputTokens: JSON.stringify(SAID).length,
      fees: {},
      output: { asked: 100, least: 100, times: 1, coversReasoning: true },
    });
  });

  it('is the whole window with an image or a stored conversation', () => {
    const image = [{ type: 'image_url', image_url: { url: 'https://x.example/a.png' } }];
    expect(boundOf(V2, said({ messages: [{ role: 'user', content: image }] })).inputTokens).toBe(200_000);
    expect(boundOf(V1, { message: 'x', model: 'command-r', conversation_id: 'c' }).inputTokens).toBe(200_000);
  });

  it('has output twice if a second pass may write citations', () => {
    expect(boundOf(V2, said({ documents: ['a'] })).output?.times).toBe(2);
    expect(
      boundOf(V2, said({ messages: [{ role: 'tool', tool_call_id: 't', content: 'x' }] })).output?.times,
    ).toBe(2);
  });

  it('is not covered by max_tokens where the model thinks', () => {
    const thinks = { ...FACTS, reasoning: true };
    expect(boundOf(V2, SAID, thinks).output?.coversReasoning).toBe(false);
    expect(boundOf(V2, said({ thinking: { type: 'enabled' } })).output?.coversReasoning).toBe(false);
    expect(boundOf(V2, said({ thinking: { type: 'disabled' } }), thinks).output?.coversReasoning).toBe(true);
  });

  it.each([
    ['connectors', { connectors: [{ id: 'web-search' }] }],
    ['search_queries_only', { search_queries_only: true }],
    ['max_tokens', { max_tokens: -1 }],
    ['messages[0].content[0].type', { messages: [{ role: 'user', content: [{ type: 'video' }] }] }],
  ])('has no bound with this %s, and names it', (param, fields) => {
    expect(refusedField(V2, said(fields))).toBe(param);
  });
});

describe('the bound of Cohere embed and rerank', () => {
  it('is a token for each byte of all texts, beyond the window of one', () => {
    const body = { model: 'embed-v4.0', input_type: 'search_document', texts: ['x'.repeat(300_000)] };
    const bound = boundOf(endpoint('cohere', '/v2/embed'), body);
    expect(bound).toMatchObject({ output: undefined, fees: {} });
    expect(bound.inputTokens).toBe(JSON.stringify(body).length);
  });

  it('has no bound for images, whose tokens have another price', () => {
    const embed = endpoint('cohere', '/v2/embed');
    expect(refusedField(embed, { model: 'embed-v4.0', images: ['data:image/png;base64,AA'] })).toBe('images');
    const inputs = [
      {
        content: [
          { type: 'text', text: 'x' },
          { type: 'image_url', image_url: { url: 'x' } },
        ],
      },
    ];
    expect(refusedField(embed, { model: 'embed-v4.0', inputs })).toBe('inputs[0].content[1]');
  });

  it('is a search for every 100 documents, and a long document counts as its chunks', () => {
    const rerank = (documents: string[]) =>
      boundOf(RERANK, { model: 'rerank-v3.5', query: 'q'.repeat(100), documents }).fees;
    expect(rerank(Array(100).fill('x'))).toEqual({ rerank_searches: 1 });
    expect(rerank(Array(101).fill('x'))).toEqual({ rerank_searches: 2 });
    expect(rerank(Array(100).fill('x'.repeat(401)))).toEqual({ rerank_searches: 2 });
  });

  it('is not known for a query as long as a chunk', () => {
    expect(refusedField(RERANK, { model: 'r', query: 'q'.repeat(500), documents: ['x'] })).toBe('query');
  });
});

it("Cohere's own error is recognised by its shape", () => {
  const { isOwnError } = V2.spend;
  expect([isOwnError({ id: 'x', message: 'no' }), isOwnError({ message: 'no' })]).toEqual([true, true]);
  for (const page of [{ error: 'x' }, { message: 1 }, { message: 'x', path: '/' }, null])
    expect(isOwnError(page)).toBe(false);
});

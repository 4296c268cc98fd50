import { BUILT_IN_PROVIDERS, type JsonObject } from '../../src/index.ts';

/** A dialect at one vendor: answers and streams of any counts, with content or without. */
export type Shape = Family & { readonly name: string; readonly provider: string; readonly path: string };

/** Answers of one API. */
type Family = {
  /** Undefined counts are left out. */
  readonly answer: (input: number | undefined, output: number | undefined, content: boolean) => JsonObject;
  /** The events before the last usage, and the last ones. `statements` are input and output, in the order of the stream. */
  readonly stream?: (
    statements: readonly (readonly [number | undefined, number | undefined])[],
    content: boolean,
  ) => readonly NamedEvent[];
  /** Embeddings and ranks: its answers have no output that is billed. */
  readonly isInputOnly?: true;
  /** It states usage once, with its last event. */
  readonly statesOnce?: true;
  /** A later statement of 0 input does not count. */
  readonly zeroInputInDeltas?: true;
};

export type NamedEvent = { readonly name?: string; readonly data: unknown };

const events = (...list: readonly unknown[]): readonly NamedEvent[] => list.map((data) => ({ data }));

const chatUsage = (input?: number, output?: number) => ({ prompt_tokens: input, completion_tokens: output });
const apiUsage = (input?: number, output?: number) => ({ input_tokens: input, output_tokens: output });

const chat: Family = {
  answer: (input, output, content) => ({
    model: 'm',
    choices: [
      { index: 0, message: { role: 'assistant', content: content ? 'Hi' : '' }, finish_reason: 'stop' },
    ],
    usage: chatUsage(input, output),
  }),
  stream: (statements, content) =>
    events(
      { model: 'm', choices: [{ index: 0, delta: { role: 'assistant', content: '' } }] },
      { model: 'm', choices: [{ index: 0, delta: { content: content ? 'Hi' : '' } }] },
      { model: 'm', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
      ...statements.map(([input, output]) => ({ model: 'm', choices: [], usage: chatUsage(input, output) })),
      '[DONE]',
    ),
};

const completions: Family = {
  answer: (input, output, content) => ({
    ...{ model: 'm', choices: [{ text: content ? 'Hi' : '', finish_reason: 'stop' }] },
    usage: chatUsage(input, output),
  }),
  stream: (statements, content) =>
    events(
      { model: 'm', choices: [{ text: content ? 'Hi' : '', finish_reason: 'stop' }] },
      ...statements.map(([input, output]) => ({ model: 'm', choices: [], usage: chatUsage(input, output) })),
      '[DONE]',
    ),
};

const responses: Family = {
  statesOnce: true,
  answer: (input, output, content) => ({
    ...{ status: 'completed', model: 'm', usage: apiUsage(input, output) },
    output: content ? [{ type: 'message', content: [{ type: 'output_text', text: 'Hi' }] }] : [],
  }),
  stream: (statements, content) =>
    events(
      { type: 'response.created', response: { status: 'in_progress', usage: null } },
      ...(content ? [{ type: 'response.output_text.delta', delta: 'Hi' }] : []),
      ...statements.map(([input, output]) => ({
        type: 'response.completed',
        // Some servers leave the output out here.
        response: { status: 'completed', model: 'm', output: [], usage: apiUsage(input, output) },
      })),
    ),
};

const realtimeResponse = (input: number | undefined, output: number | undefined, content: boolean) => ({
  ...{ status: 'completed', usage: apiUsage(input, output) },
  output: content ? [{ type: 'message', content: [{ type: 'output_text', text: 'Hi' }] }] : [],
});

const realtime: Family = {
  statesOnce: true,
  answer: realtimeResponse,
  stream: (statements, content) =>
    events(
      { type: 'response.created', response: { status: 'in_progress', usage: null } },
      ...statements.map(([input, output]) => ({
        type: 'response.done',
        response: realtimeResponse(input, output, content),
      })),
    ),
};

const block = (content: boolean) => (content ? [{ type: 'text', text: 'Hi' }] : []);

const messages = (wrap = (event: object): unknown => event): Family => ({
  zeroInputInDeltas: true,
  answer: (input, output, content) => ({
    ...{ type: 'message', model: 'claude-x', stop_reason: 'end_turn', content: block(content) },
    usage: apiUsage(input, output),
  }),
  stream: (statements, content) => {
    const [[input, output] = [], ...later] = statements;
    const deltas = later.length > 0 ? later : [[undefined, output] as const];
    return events(
      ...[
        {
          type: 'message_start',
          message: { type: 'message', model: 'claude-x', usage: apiUsage(input, output) },
        },
        { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
        ...(content
          ? [{ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hi' } }]
          : []),
        ...deltas.map(([input, output]) => ({
          type: 'message_delta',
          delta: {},
          usage: apiUsage(input, output),
        })),
        { type: 'message_stop' },
      ].map(wrap),
    );
  },
});

const inBedrock = (event: object) => ({ bytes: Buffer.from(JSON.stringify(event)).toString('base64') });

const candidate = (content: boolean) => ({
  candidates: [
    { index: 0, content: { role: 'model', parts: content ? [{ text: 'Hi' }] : [] }, finishReason: 'STOP' },
  ],
});
const metadata = (input?: number, output?: number) => ({
  usageMetadata: {
    ...{ promptTokenCount: input, candidatesTokenCount: output },
    totalTokenCount: (input ?? 0) + (output ?? 0),
  },
});

const gemini: Family = {
  answer: (input, output, content) => ({ ...candidate(content), ...metadata(input, output) }),
  stream: (statements, content) =>
    events(...statements.map(([input, output]) => ({ ...candidate(content), ...metadata(input, output) }))),
};

const converse: Family = {
  statesOnce: true,
  answer: (input, output, content) => ({
    output: { message: { role: 'assistant', content: content ? [{ text: 'Hi' }] : [] } },
    usage: { inputTokens: input, outputTokens: output },
  }),
  stream: (statements, content) => [
    { name: 'messageStart', data: { role: 'assistant' } },
    ...(content
      ? [{ name: 'contentBlockDelta', data: { delta: { text: 'Hi' }, contentBlockIndex: 0 } }]
      : []),
    { name: 'messageStop', data: { stopReason: 'end_turn' } },
    ...statements.map(([input, output]) => ({
      name: 'metadata',
      data: { usage: { inputTokens: input, outputTokens: output } },
    })),
  ],
};

const cohereChat: Family = {
  statesOnce: true,
  answer: (input, output, content) => ({
    message: { role: 'assistant', content: block(content) },
    usage: { billed_units: apiUsage(input, output) },
  }),
  stream: (statements, content) =>
    events(
      { type: 'message-start', delta: { message: { role: 'assistant', content: [] } } },
      ...(content ? [{ type: 'content-delta', delta: { message: { content: { text: 'Hi' } } } }] : []),
      ...statements.map(([input, output]) => ({
        type: 'message-end',
        delta: { finish_reason: 'COMPLETE', usage: { billed_units: apiUsage(input, output) } },
      })),
    ),
};

const cohereChatV1: Family = {
  statesOnce: true,
  answer: (input, output, content) => ({
    text: content ? 'Hi' : '',
    meta: { billed_units: apiUsage(input, output) },
  }),
  stream: (statements, content) =>
    events(
      ...(content ? [{ event_type: 'text-generation', text: 'Hi' }] : []),
      ...statements.map(([input, output]) => ({
        event_type: 'stream-end',
        response: { text: '', meta: { billed_units: apiUsage(input, output) } },
      })),
    ),
};

const images: Family = {
  statesOnce: true,
  answer: (input, output, content) => ({
    data: content ? [{ b64_json: 'AA' }] : [],
    usage: apiUsage(input, output),
  }),
};

const embeddings: Family = {
  isInputOnly: true,
  answer: (input, _, content) => ({
    ...{ model: 'm', data: content ? [{ embedding: [1] }] : [], usage: { prompt_tokens: input } },
  }),
};

const cohereEmbed: Family = {
  isInputOnly: true,
  answer: (input, _, content) => ({
    embeddings: { float: content ? [[1]] : [] },
    meta: { billed_units: { input_tokens: input } },
  }),
};

const rerank: Family = {
  isInputOnly: true,
  answer: (units, _, content) => ({
    results: content ? [{ index: 0, relevance_score: 1 }] : [],
    meta: { billed_units: { search_units: units } },
  }),
};

const geminiEmbed: Family = {
  isInputOnly: true,
  answer: (input, _, content) => ({
    embedding: { values: content ? [1] : [] },
    usageMetadata: { promptTokenCount: input },
  }),
};

/** The API of each dialect that reads usage. The first that fits its name and path counts. */
const FAMILIES: readonly (readonly [dialect: RegExp, family: Family])[] = [
  [/^cohere-chat .*v2/, cohereChat],
  [/^cohere-chat /, cohereChatV1],
  [/^cohere-embed /, cohereEmbed],
  [/^cohere-rerank /, rerank],
  [/^gemini-generate /, gemini],
  [/^gemini-embed /, geminiEmbed],
  [/^bedrock-converse /, converse],
  [/^bedrock-anthropic /, messages(inBedrock)],
  [/^(?:anthropic-messages|vertex-anthropic) /, messages()],
  [/chat /, chat],
  [/^mistral-fim /, chat],
  [/completions /, completions],
  [/responses /, responses],
  [/realtime /, realtime],
  [/embeddings /, embeddings],
  [/images /, images],
];

/** Dialects that report no tokens: sound reports nothing, and Imagen its pictures. */
const WITHOUT_COUNTS = /^(?:\S+-speech|gemini-predict) /;

/** Every dialect on every path of every vendor. */
export const SHAPES: readonly Shape[] = [...BUILT_IN_PROVIDERS.values()].flatMap(({ id, routes }) =>
  routes.flatMap(({ path, dialect }) => {
    const key = `${dialect.id} ${path}`;
    if (!dialect.spend || WITHOUT_COUNTS.test(key)) return [];
    const family = FAMILIES.find(([fits]) => fits.test(key))?.[1];
    if (!family) throw new Error(`no family for ${key}`);
    return { ...family, name: `${id} ${path}`, provider: id, path: path.replaceAll('*', 'x') };
  }),
);

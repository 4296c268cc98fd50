/** How to call an endpoint for a first try, and how to read the text of its answer. */
export type Dialect = {
  readonly ending: RegExp;
  readonly body: (model: string) => object;
  readonly headers?: Readonly<Record<string, string>>;
  /** The query that a stream needs. */
  readonly query?: string;
  /** The text in an event of a stream. */
  readonly textOf: (event: StreamEvent) => string | undefined;
};

/** An event of any of these streams. */
type StreamEvent = {
  readonly type?: string;
  readonly choices?: readonly { readonly delta?: { readonly content?: string | null } }[];
  readonly delta?:
    | string
    | { readonly text?: string; readonly message?: { readonly content?: { readonly text?: string } } };
  readonly candidates?: readonly {
    readonly content?: { readonly parts?: readonly { readonly text?: string }[] };
  }[];
};

const MESSAGES = [{ role: 'user', content: 'Why is the sky blue?' }];

const DIALECTS: readonly Dialect[] = [
  {
    ending: /\/chat\/completions$/,
    body: (model) => ({ model, max_tokens: 256, stream: true, messages: MESSAGES }),
    textOf: ({ choices }) => choices?.[0]?.delta?.content ?? undefined,
  },
  {
    ending: /\/v1\/messages$/,
    body: (model) => ({ model, max_tokens: 256, stream: true, messages: MESSAGES }),
    headers: { 'anthropic-version': '2023-06-01' },
    textOf: ({ delta }) => (typeof delta === 'object' ? delta.text : undefined),
  },
  {
    ending: /\/responses$/,
    body: (model) => ({ model, max_output_tokens: 256, stream: true, input: 'Why is the sky blue?' }),
    textOf: ({ type, delta }) =>
      type === 'response.output_text.delta' && typeof delta === 'string' ? delta : undefined,
  },
  {
    ending: /:streamGenerateContent$/,
    query: '?alt=sse',
    body: () => ({ contents: [{ role: 'user', parts: [{ text: 'Why is the sky blue?' }] }] }),
    textOf: ({ candidates }) => candidates?.[0]?.content?.parts?.map(({ text = '' }) => text).join(''),
  },
  {
    ending: /\/v2\/chat$/,
    body: (model) => ({ model, max_tokens: 256, stream: true, messages: MESSAGES }),
    textOf: ({ delta }) => (typeof delta === 'object' ? delta.message?.content?.text : undefined),
  },
];

export const dialectOf = (path: string): Dialect | undefined =>
  DIALECTS.find(({ ending }) => ending.test(path));

/** Paths of usual calls, to choose from. */
export const PATHS = [
  '/v1/chat/completions',
  '/v1/responses',
  '/v1/messages',
  '/v1/embeddings',
  '/v1/realtime',
  '/v2/chat',
] as const;

/** A call that asks for something that no list has, and its name in figures. */
export type UnknownKind = {
  readonly provider: string;
  readonly kind: 'field' | 'kind' | 'beta' | 'model';
  readonly name: string;
  /** Its path, where `m` is the first model of its URL. */
  readonly path: string;
  readonly body: object;
  readonly headers?: Readonly<Record<string, string>>;
};

const HI = [{ role: 'user', content: 'Hi' }];
const OPENAI = { provider: 'openai', path: '/v1/chat/completions' };
const ANTHROPIC = { provider: 'anthropic', path: '/v1/messages' };
const GOOGLE = { provider: 'google', path: '/v1beta/models/m:generateContent' };
const COHERE = { provider: 'cohere', path: '/v2/chat' };
const CHAT = { model: 'm', max_tokens: 5, messages: HI };
const GEMINI = { contents: [{ parts: [{ text: 'Hi' }] }], generationConfig: { maxOutputTokens: 5 } };
const COMMAND = { ...CHAT, model: 'command-r-08-2024' };
const BETA = { kind: 'beta', name: 'anthropic-beta=new-2026-12-01' } as const;
const headers = { 'anthropic-beta': 'new-2026-12-01' };
const sketch = { ...CHAT, messages: [{ role: 'user', content: [{ type: 'sketch' }] }] };
const SKETCH = { kind: 'kind', name: 'messages[].content[].type=sketch' } as const;
const FIELD = { kind: 'field', name: 'brand_new' } as const;
const MODEL = { kind: 'model', name: 'model=new-1' } as const;

/** The four kinds of what a list can lack, in the words of several APIs. The model `m` has a price everywhere. */
export const UNKNOWN_KINDS: readonly UnknownKind[] = [
  { ...OPENAI, ...FIELD, body: { ...CHAT, brand_new: 1 } },
  { ...OPENAI, ...SKETCH, body: sketch },
  { ...OPENAI, ...BETA, body: CHAT, headers },
  { ...OPENAI, ...MODEL, body: { ...CHAT, model: 'new-1' } },
  { ...ANTHROPIC, ...FIELD, body: { ...CHAT, brand_new: 1 } },
  { ...ANTHROPIC, ...SKETCH, body: sketch },
  { ...ANTHROPIC, ...BETA, body: CHAT, headers },
  { ...ANTHROPIC, ...MODEL, body: { ...CHAT, model: 'new-1' } },
  { ...GOOGLE, kind: 'field', name: 'brandNew', body: { ...GEMINI, brandNew: 1 } },
  {
    ...{ ...GOOGLE, kind: 'kind', name: 'contents[].parts[].sketch' },
    body: { ...GEMINI, contents: [{ parts: [{ sketch: {} }] }] },
  },
  { ...GOOGLE, ...BETA, body: GEMINI, headers },
  { ...GOOGLE, ...MODEL, path: '/v1beta/models/new-1:generateContent', body: GEMINI },
  { ...COHERE, ...FIELD, body: { ...COMMAND, brand_new: 1 } },
  { ...COHERE, ...SKETCH, body: { ...sketch, model: COMMAND.model } },
  { ...COHERE, ...BETA, body: COMMAND, headers },
  { ...COHERE, ...MODEL, body: { ...COMMAND, model: 'new-1' } },
];

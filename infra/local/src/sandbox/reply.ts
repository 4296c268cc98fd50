import { z } from 'zod';

/** An answer of the sandbox, and its reported usage. */
export type SandboxReply = {
  text: string;
  /** The text in the pieces in which a stream delivers it. */
  pieces: string[];
  inputTokens: number;
  outputTokens: number;
  /** Whether the caller's maximum cut the text short. */
  isCut: boolean;
};

/** Microdollars per million tokens: those of a small model, and of the dearest ones. */
const SMALL = { input: 150_000, output: 600_000 };
const DEAR = { input: 150_000_000, output: 600_000_000 };

/** The model that is always overloaded. */
export const OVERLOADED = 'sandbox-overloaded';

/** The models that exist, and their prices. Any other is refused, as by a provider. */
export const SANDBOX_PRICES = {
  'sandbox-1': SMALL,
  'sandbox-mini': SMALL,
  'sandbox-pro': DEAR,
  [OVERLOADED]: SMALL,
} as const;
export const SANDBOX_MODELS = Object.keys(SANDBOX_PRICES);

/** The tokens that each of them reads at most, as `PROVIDERS_FILE` states it. */
export const SANDBOX_WINDOW = 128_000;

/** The model of Realtime sessions, with the price and the bounds of OpenAI's (developers.openai.com/api/docs/models/gpt-realtime, 2026-11-29). */
export const SANDBOX_VOICE = {
  model: 'gpt-realtime',
  price: { input: 4_000_000, input_audio: 32_000_000, output: 16_000_000, output_audio: 64_000_000 },
  facts: { window: 32_768, output: 4_096, thinks: false },
} as const;

/** A message's content in every dialect: text, or parts of which some have text. */
export const Content = z
  .union([z.string(), z.array(z.looseObject({ text: z.string().nullish() }))])
  .nullish();

/**
 * Repeats the last of `texts`: the same question always gets the same answer at the same cost. A token is
 * 4 bytes of UTF-8, the last one perhaps fewer.
 */
export function composeReply(texts: string[], maxTokens: number | null | undefined): SandboxReply {
  const whole = `${SANDBOX_SAYS} You said: ${(texts.at(-1) ?? '').slice(0, 500)}`;
  const text = maxTokens == null ? whole : firstBytes(whole, maxTokens * BYTES_A_TOKEN);
  return {
    text,
    pieces: piecesOf(text),
    inputTokens: countTokens(texts),
    outputTokens: countTokens([text]),
    isCut: text.length < whole.length,
  };
}

/** How each answer begins. */
export const SANDBOX_SAYS = 'This is the sandbox, no model was asked.';

/** A text in words. */
export const piecesOf = (text: string): string[] => text.match(/\S+\s*|\s+/g) ?? [];

export function countTokens(texts: string[]): number {
  return texts.reduce((sum, text) => sum + Math.ceil(Buffer.byteLength(text) / BYTES_A_TOKEN), 0);
}

/** Refuses an input that the window of a model has no room for (`context_length_exceeded`, as in github.com/bytedance/deer-flow/issues/310, read on 2026-11-30). */
export function tooLong(inputTokens: number, param: string): SandboxRefusal | undefined {
  if (inputTokens <= SANDBOX_WINDOW) return undefined;
  const message = `The models of the sandbox read at most ${SANDBOX_WINDOW} tokens, and this input has ${inputTokens}: shorten it`;
  return { refused: 'too_long', message, param };
}

/** One string a message, its text parts joined. */
export function textOf(content: z.infer<typeof Content>): string {
  if (content == null) return '';
  return typeof content === 'string' ? content : content.map((part) => part.text ?? '').join('');
}

export const unixSeconds = (): number => Math.floor(Date.now() / 1000);

const BYTES_A_TOKEN = 4;

/** Cut between characters: a byte that continues one (10xxxxxx) never comes first. */
function firstBytes(text: string, count: number): string {
  const bytes = Buffer.from(text);
  let end = Math.min(count, bytes.length);
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return bytes.toString('utf8', 0, end);
}

export type SandboxEvent = { event?: string; data: object | '[DONE]' };

/** The outcome of a request to an endpoint of the sandbox's body: an answer, a stream, or why not. */
export type SandboxAnswer = { json: object } | { events: SandboxEvent[] } | SandboxRefusal;

export type SandboxRefusal = {
  refused:
    | 'unauthenticated'
    | 'invalid'
    | 'unknown_model'
    | 'unknown_path'
    | 'unknown_response'
    | 'too_long'
    | 'overloaded';
  message: string;
  param?: string;
};

/** Makes an endpoint of a body's schema and of what answers it; `id` is another one for every call. */
export function endpoint<Body extends { model: string }>(
  schema: z.ZodType<Body>,
  answer: (body: Body, id: string) => SandboxAnswer,
): (body: unknown, id: string) => SandboxAnswer {
  return (input, id) => {
    const parsed = schema.safeParse(input);
    if (!parsed.success) return invalid(parsed.error);
    const { model } = parsed.data;
    if (model === OVERLOADED) return { refused: 'overloaded', message: `${OVERLOADED} is always overloaded` };
    if (SANDBOX_MODELS.some((known) => known === model)) return answer(parsed.data, id);
    const message = `The model '${model}' does not exist: the sandbox has ${SANDBOX_MODELS.join(', ')}`;
    return { refused: 'unknown_model', message, param: 'model' };
  };
}

function invalid(error: z.ZodError): SandboxRefusal {
  const [issue] = error.issues;
  const param = issue?.path.join('.') || 'body';
  return { refused: 'invalid', message: `${param}: ${issue?.message ?? 'invalid'}`, param };
}

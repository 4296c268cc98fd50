import { isJsonObject } from '../dialect.ts';

/**
 * Shapes of error bodies among providers that follow OpenAI: `{error: {message}}`, `{error: "text"}` (xAI),
 * `{message}` (Mistral, Azure's gateway), `{detail}` (FastAPI's, at Mistral and Perplexity), and Google's list.
 */
export type ErrorShape = 'error object' | 'error text' | 'error list' | 'message' | 'detail';

/** Whether a body is one of a provider's own errors; an intermediary's page is no JSON object at all. */
export const isErrorOf = (shapes: readonly ErrorShape[], answer: unknown): boolean =>
  shapes.some((shape) => IS[shape](answer));

const hasText = (value: unknown, field: string): boolean =>
  isJsonObject(value) && typeof value[field] === 'string' && value[field] !== '';

const isErrorObject = (answer: unknown): boolean => isJsonObject(answer) && hasText(answer.error, 'message');

const IS: Readonly<Record<ErrorShape, (answer: unknown) => boolean>> = {
  'error object': isErrorObject,
  'error text': (answer) => hasText(answer, 'error'),
  'error list': (answer) => Array.isArray(answer) && answer.length > 0 && answer.every(isErrorObject),
  message: (answer) => hasText(answer, 'message'),
  detail: (answer) => hasText(answer, 'detail') || (isJsonObject(answer) && Array.isArray(answer.detail)),
};

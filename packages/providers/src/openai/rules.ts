import type { Cited, ErrorForm, UsageForm } from '../facts/fact.ts';
import * as ADDED from '../facts/openai/added.ts';
import { isJsonObject } from '../json.ts';
import type { Spend } from '../spend.ts';

/** How a vendor's API differs from OpenAI's, which it follows, as far as money is concerned. */
export type OpenaiRules = Omit<UsageForm, keyof Cited> & {
  readonly input: InputRules;
  /** Why a stream of this call refuses `stream_options`, so that it reports no usage. Undefined: it takes it. */
  readonly refusesAsking?: Spend['refusesAsking'];
};

/** The input that an API counts beyond the tokens that a body's bytes can make. */
export type InputRules = {
  /** Tokens beyond those that the vendor adds to every call (`VendorRules.addedInput`). */
  readonly perCall?: number;
  readonly perMessage: number;
  readonly perTool: number;
  /** Some of its tokenizers normalise text, which can make it longer. */
  readonly normalises: boolean;
  /** Most tokens of an image, where published. */
  readonly imageTokens?: (model: unknown) => number | undefined;
};

export const OPENAI_INPUT: InputRules = { ...ADDED.MARKERS, normalises: false };
export const OPENAI_ADDED = ADDED.ADDED.most;

/** Models with open weights: a template adds the text that its author chose. */
export const OPEN_WEIGHTS_INPUT: InputRules = { ...ADDED.MARKERS_OF_TEMPLATES, normalises: true };
export const OPEN_WEIGHTS_ADDED = ADDED.ADDED_BY_TEMPLATES.most;

/** Whether a body is one of a provider's own errors; an intermediary's page is not a JSON object. */
export const isErrorOf = (forms: readonly ErrorForm[], answer: unknown): boolean =>
  forms.some((form) => IS[form](answer));

const hasText = (value: unknown, field: string): boolean =>
  isJsonObject(value) && typeof value[field] === 'string' && value[field] !== '';

const isErrorObject = (answer: unknown): boolean => isJsonObject(answer) && hasText(answer.error, 'message');

const IS: Readonly<Record<ErrorForm, (answer: unknown) => boolean>> = {
  'error object': isErrorObject,
  'error text': (answer) => hasText(answer, 'error'),
  'error list': (answer) => Array.isArray(answer) && answer.length > 0 && answer.every(isErrorObject),
  message: (answer) => hasText(answer, 'message'),
  detail: (answer) => hasText(answer, 'detail') || (isJsonObject(answer) && Array.isArray(answer.detail)),
};

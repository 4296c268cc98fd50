import { type AllowList, allow, type Effect, judge } from '../bounds/allow-list.ts';
import { compileGroup } from '../bounds/compile-group.ts';
import { countIn } from '../bounds/output-bound.ts';
import { type Dialect, MODEL, NAMES } from '../dialect.ts';
import { COMPLETION_FIELDS, OPENAI_COMPLETION_FIELDS } from '../facts/openai/completions.ts';
import type { JsonObject } from '../json.ts';
import type { DialectSpend } from '../spend.ts';
import { boundText, chunkSpend, MOST_CHOICES } from './chat.ts';
import { sharedFields } from './fields.ts';
import { boundPrompts, inputOf } from './input.ts';
import type { OpenaiRules } from './rules.ts';

/** How a vendor's completions differ from OpenAI's. */
export type CompletionsDifferences = {
  /** Top-level fields beyond those that all vendors share. */
  readonly fields?: AllowList;
  /** The most output of a call that omits the bound. Undefined if the vendor does not document it. */
  readonly omitted?: number;
  /** It writes one choice and takes `random_seed`, as fill-in-the-middle does. */
  readonly fillsIn?: true;
};

/** The older Completions API (`openai` SDK, resources/completions), where the bound is still `max_tokens`. */
export const openaiCompletions = (
  id: string,
  rules: OpenaiRules,
  { fields, omitted, fillsIn }: CompletionsDifferences = {},
): Dialect => ({
  id,
  settings: [
    MODEL,
    { at: ['max_tokens'], names: NAMES.outputBound },
    { at: ['stop'], names: NAMES.stop },
    ...(fillsIn ? [] : [{ at: ['n'], names: NAMES.count } as const]),
    { at: [fillsIn ? 'random_seed' : 'seed'], names: NAMES.seed },
  ],
  spend: completionsSpend(rules, allow(sharedFields(rules), COMPLETIONS, fields ?? {}), omitted),
});

/** OpenAI's own. Without a bound it writes 16 tokens (`openai` 7.59, resources/completions.d.ts). */
export const AS_OPENAI: CompletionsDifferences = {
  fields: compileGroup(OPENAI_COMPLETION_FIELDS, {
    bestOf: (_, body) =>
      countIn(body, 'best_of', MOST_CHOICES) === undefined
        ? { unbounded: `is not a whole number from 1 to ${MOST_CHOICES}` }
        : 'harmless',
  }),
  omitted: 16,
};

const COMPLETIONS: AllowList = compileGroup(COMPLETION_FIELDS, { prompt: judgePrompt });

/** Every prompt of a list is completed `n` or `best_of` times. */
function completionsSpend(rules: OpenaiRules, list: AllowList, omitted: number | undefined): DialectSpend {
  const { input } = rules;
  return {
    ...chunkSpend(rules, 'max_tokens'),
    boundBody: (body, { bytes, facts }) =>
      boundText(body, facts, {
        input: () => {
          const items = prompts(body.prompt);
          return boundPrompts(
            judge(list, body),
            facts,
            (most) => inputOf(body, { bytes, input, most }, { items, rewritten: () => [], tools: 0 }),
            items.length,
          );
        },
        times: choices(body),
        ...(omitted !== undefined && { omitted }),
      }),
  };
}

/** A text, tokens, or a list of either. */
export function judgePrompt(value: unknown): Effect {
  const list = Array.isArray(value) ? value : [value];
  const isPrompts = list.every(isText) || list.every(isToken) || list.every(isTokenList);
  return isPrompts ? 'harmless' : { unbounded: 'is neither text nor tokens' };
}

/** The prompts of a call. Each is completed, or embedded, by itself. */
export function prompts(value: unknown): readonly unknown[] {
  return Array.isArray(value) && value.length > 0 && !value.every(isToken) ? value : [value];
}

function choices(body: JsonObject): number | undefined {
  const each = [countIn(body, 'n', MOST_CHOICES), countIn(body, 'best_of', MOST_CHOICES)];
  if (each.includes(undefined)) return undefined;
  return prompts(body.prompt).length * Math.max(...each.map(Number));
}

const isText = (value: unknown): boolean => typeof value === 'string';
const isToken = (value: unknown): boolean => Number.isSafeInteger(value);
const isTokenList = (value: unknown): boolean => Array.isArray(value) && value.every(isToken);

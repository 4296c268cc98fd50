import { type AllowList, allow, type Effect, harmless, judge, only } from '../bounds/allow-list.ts';
import { countIn } from '../bounds/output-bound.ts';
import type { JsonObject } from '../dialect.ts';
import type { Spend } from '../spend.ts';
import { boundText, chunkSpend, MOST_CHOICES } from './chat.ts';
import { standardTier } from './fields.ts';
import { boundInput, inputOf } from './input.ts';
import type { ProviderRules } from './rules.ts';

/** One provider's completions. */
export type CompletionsRules = {
  readonly provider: ProviderRules;
  readonly fields: AllowList;
  /** Output that an omitted bound means at this provider, where it says so. */
  readonly omitted?: number;
};

/** What completions have that chat completions have not. An echo that counts as output would have no bound. */
export const COMPLETIONS: AllowList = allow(harmless('suffix'), {
  prompt: judgePrompt,
  echo: only('what is echoed may count as output', false),
});

/** OpenAI counts a prompt once, echoed or not, and writes `best_of` completions to return `n`. */
export const OPENAI_COMPLETIONS: AllowList = allow(COMPLETIONS, harmless('echo'), {
  best_of: (_, body) =>
    countIn(body, 'best_of', MOST_CHOICES) === undefined
      ? { unbounded: `is not a whole number from 1 to ${MOST_CHOICES}` }
      : 'harmless',
});

/** Spending on the older completions: every prompt of a list is completed `n` or `best_of` times. */
export function openaiCompletionsSpend({ provider, fields, omitted }: CompletionsRules): Spend {
  const list = allow(fields, { service_tier: standardTier(provider.standardTier) });
  return {
    ...chunkSpend(provider, 'max_tokens'),
    bound: (body, { bytes, facts }) =>
      boundText(body, facts, provider, {
        input: () => {
          const items = prompts(body.prompt);
          return boundInput(
            judge(list, body),
            provider.input,
            facts,
            () => inputOf(body, { bytes, input: provider.input }, { items, rewritten: [], tools: 0 }),
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
  const isPrompts = list.every(isText) || list.every(isToken) || list.every(isTokens);
  return isPrompts ? 'harmless' : { unbounded: 'is neither text nor tokens' };
}

/** The prompts of a call, each of which is completed, or embedded, by itself. */
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
const isTokens = (value: unknown): boolean => Array.isArray(value) && value.every(isToken);

import { type AllowList, allow, type Effect, judgeObject, only, type Rule } from '../bounds/allow-list.ts';
import { apart, compileGroup } from '../bounds/compile-group.ts';
import { countIn, readOutputBound } from '../bounds/output-bound.ts';
import * as CHAT from '../facts/openai/chat.ts';
import { countOf, type JsonObject } from '../json.ts';
import { judgeMessages, ownTools, type Parts } from './messages.ts';
import type { InputRules, OpenaiRules } from './rules.ts';

/** The tier is set to the standard one before a call is bounded, so any other tier is refused. */
export const standardTier = (value: string | undefined): Rule =>
  only('is another price than the standard tier', ...(value === undefined ? [] : [value]));

/** Fields that chat completions and completions share at every provider that follows OpenAI. */
export const sharedFields = (rules: Pick<OpenaiRules, 'standardTier'>): AllowList =>
  compileGroup(CHAT.SHARED_FIELDS, {
    outputBound: apart(readOutputBound),
    choices: apart(countIn),
    streamOptions: judgeObject(compileGroup(CHAT.STREAM_OPTIONS)),
    standardTier: standardTier(rules.standardTier),
  });

/** Fields of chat completions: the shared ones, messages, the caller's own tools, and fields refused by name. */
export const chatFields = (
  rules: Pick<OpenaiRules, 'standardTier'> & { readonly input: InputRules },
  parts: Parts = new Map(),
): AllowList =>
  allow(
    sharedFields(rules),
    compileGroup(CHAT.CHAT_FIELDS, {
      messages: judgeMessages(parts, rules.input),
      tools: ownTools(compileGroup(CHAT.TOOLS)),
      thinkingBudget: apart(thinkingBudget),
      textOnly,
    }),
  );

/** Fields by which OpenAI stores, caches and moderates. */
export const CACHE_AND_RECORDS: AllowList = compileGroup(CHAT.CACHE_AND_RECORDS);

/** Sampling that hosts of open models offer. */
export const SAMPLING: AllowList = compileGroup(CHAT.SAMPLING);

/** Thinking that a call requests with a budget, in the spellings of hosts of open models. */
export const thinkingFields: AllowList = compileGroup(CHAT.THINKING_FIELDS, {
  thinking: judgeObject(compileGroup(CHAT.THINKING, { thinkingBudget: apart(thinkingBudget) })),
  reasoning: judgeObject(compileGroup(CHAT.REASONING, { thinkingBudget: apart(thinkingBudget) })),
});

/** Tokens of thinking that a call sets as a budget, in any spelling; undefined if one is not a whole number. */
export function thinkingBudget(body: JsonObject): number | undefined {
  const { thinking, reasoning, reasoning_effort: effort } = body;
  if ((thinking ?? reasoning ?? effort) === undefined) return 0;
  const sum = Math.max(
    countOf(thinking, 'budget_tokens'),
    countOf(reasoning, 'max_tokens'),
    typeof effort === 'number' ? countOf(body, 'reasoning_effort') : 0,
  );
  return Number.isNaN(sum) ? undefined : sum;
}

/** Text is priced as output; other kinds of output have rates of their own. */
function textOnly(value: unknown): Effect {
  const isText = Array.isArray(value) && value.every((kind) => kind === 'text');
  return isText ? 'harmless' : { unbounded: 'other output than text has rates of its own' };
}

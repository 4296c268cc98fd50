import { allow, harmless, judge } from '../bounds/allow-list.ts';
import { isJsonObject } from '../dialect.ts';
import type { Spend } from '../spend.ts';
import { modelIn } from './chat.ts';
import { judgePrompt, prompts } from './completions.ts';
import { isErrorOf } from './errors.ts';
import { boundInput, inputOf } from './input.ts';
import type { ProviderRules } from './rules.ts';
import { readChatUsage, reported } from './usage.ts';

/** Spending on embeddings: input alone, each element of a list at most one context window. */
export function openaiEmbeddingsSpend(provider: ProviderRules): Spend {
  return {
    model: modelIn,
    streams: () => false,
    bound: (body, { bytes, facts }) => {
      const items = prompts(body.input);
      const measured = () =>
        inputOf(body, { bytes, input: provider.input }, { items, rewritten: [], tools: 0 });
      const input = boundInput(judge(FIELDS, body), provider.input, facts, measured, items.length);
      if ('unbounded' in input) return input;
      return { bound: { inputTokens: input.tokens, fees: {}, output: undefined } };
    },
    readAnswer: (answer) => {
      if (!isJsonObject(answer)) return undefined;
      const usage = readChatUsage(answer.usage, provider, false);
      if (usage === undefined) return undefined;
      const { output_tokens: _, ...input } = usage;
      return reported(answer, input, provider);
    },
    isOwnError: (answer) => isErrorOf(provider.errors, answer),
  };
}

/** `openai` SDK, resources/embeddings; `@mistralai/mistralai`, embeddingrequest. Shape and type of vectors are free. */
const FIELDS = allow(
  harmless('model', 'dimensions', 'encoding_format', 'user', 'metadata', 'output_dimension', 'output_dtype'),
  { input: judgePrompt },
);

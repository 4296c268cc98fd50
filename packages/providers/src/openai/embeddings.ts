import { judge } from '../bounds/allow-list.ts';
import { compileGroup } from '../bounds/compile-group.ts';
import { type Dialect, MODEL, NO_OUTPUT } from '../dialect.ts';
import { EMBEDDING_FIELDS } from '../facts/openai/completions.ts';
import { countOf, isJsonObject } from '../json.ts';
import type { DialectSpend } from '../spend.ts';
import { hasItems } from '../usage/content.ts';
import { EMBEDDINGS_COUNTS } from '../usage/known.ts';
import { unknownCounts } from '../usage/known-counts.ts';
import { modelIn } from './chat.ts';
import { judgePrompt, prompts } from './completions.ts';
import { boundPrompts, inputOf } from './input.ts';
import { isErrorOf, type OpenaiRules } from './rules.ts';
import { readChatUsage, stated } from './usage.ts';

/** Embeddings (`openai` SDK, resources/embeddings). */
export const openaiEmbeddings = (id: string, rules: OpenaiRules): Dialect => ({
  id,
  settings: [MODEL, ...NO_OUTPUT],
  spend: embeddingsSpend(rules),
});

/** Only input is billed. Each element of a list uses at most one context window. */
function embeddingsSpend(rules: OpenaiRules): DialectSpend {
  return {
    model: modelIn,
    streams: () => false,
    boundBody: (body, { bytes, facts }) => {
      const items = prompts(body.input);
      const parts = { items, rewritten: () => [], tools: 0 };
      const measured = (most: number) => inputOf(body, { bytes, input: rules.input, most }, parts);
      const input = boundPrompts(judge(FIELDS, body), facts, measured, items.length);
      if ('unbounded' in input) return input;
      return { bound: { inputTokens: input.tokens, fees: {}, output: undefined } };
    },
    readAnswer: (answer) => {
      if (!isJsonObject(answer)) return undefined;
      const { output_tokens: _, ...input } = readChatUsage(answer.usage, rules, false) ?? {};
      return {
        ...stated(answer, input.input_tokens === undefined ? undefined : input),
        // Without output all tokens are input.
        parts: { input_tokens: countOf(answer.usage, 'total_tokens') },
        content: hasItems(answer.data) ? 'result' : undefined,
        unknown: unknownCounts(answer.usage, EMBEDDINGS_COUNTS),
      };
    },
    isOwnError: (answer) => isErrorOf(rules.errors, answer),
  };
}

const FIELDS = compileGroup(EMBEDDING_FIELDS, { prompt: judgePrompt });

import { type AllowList, allow, type Effect, harmless, judge } from '../bounds/allow-list.ts';
import {
  NOTHING,
  rewrittenShare,
  type Share,
  shareBelow,
  shareOfEach,
  together,
  unboundedShare,
  WHOLE_WINDOW,
} from '../bounds/input-share.ts';
import { isCount } from '../bounds/output-bound.ts';
import { isJsonObject } from '../dialect.ts';

/** Fields of generateContent (`@google/genai` 3.1, generateContentParametersToMldev; https://ai.google.dev/api/generate-content). */
export const GENERATE_FIELDS: AllowList = allow(
  harmless(
    'contents', // judged part by part
    'labels',
    'model', // compared with the path's
    'safetySettings',
    'serviceTier', // removed, see atStandardPrice
    'store',
    'systemInstruction',
    'toolConfig',
    'tools', // judged one by one
  ),
  {
    cachedContent: 'whole window',
    generationConfig: (value) => judgeObject(GENERATION, value),
  },
);

/** Fields of embedContent and of each request of batchEmbedContents. */
export const EMBED_FIELDS: AllowList = harmless(
  'content',
  'model',
  'outputDimensionality',
  'taskType',
  'title',
);

const count = (value: unknown): Effect =>
  isCount(value) ? 'harmless' : { unbounded: 'is not a whole number above 0' };

const GENERATION: AllowList = allow(
  harmless(
    'enableEnhancedCivicAnswers',
    'frequencyPenalty',
    'logprobs',
    'mediaResolution', // images are held at the largest
    'presencePenalty',
    'responseJsonSchema',
    '_responseJsonSchema',
    'responseLogprobs',
    'responseMimeType',
    'responseSchema',
    'seed',
    'stopSequences',
    'temperature',
    'topK',
    'topP',
  ),
  {
    candidateCount: count,
    maxOutputTokens: count,
    responseModalities: (value) =>
      Array.isArray(value) && value.every((modality) => modality === 'TEXT')
        ? 'harmless'
        : { unbounded: 'images and speech are not bounded by maxOutputTokens' },
    thinkingConfig: (value) =>
      judgeObject(
        allow(harmless('includeThoughts', 'thinkingLevel'), {
          thinkingBudget: (budget) =>
            budget === 0 || budget === -1 || isCount(budget)
              ? 'harmless'
              : { unbounded: 'is neither -1 nor a whole number' },
        }),
        value,
      ),
  },
);

const judgeObject = (list: AllowList, value: unknown): Effect =>
  isJsonObject(value) ? judge(list, value) : { unbounded: 'is not an object' };

/** All tools of a call. Those that Google runs have no maximum of rounds, and some cost by use. */
export const geminiTools = (tools: unknown): Share => {
  if (tools === undefined) return NOTHING;
  return shareOfEach(tools, (tool) =>
    isJsonObject(tool)
      ? together(Object.entries(tool).map(([name, value]) => shareBelow(name, toolShare(name, value))))
      : unboundedShare('is not an object'),
  );
};

function toolShare(name: string, value: unknown): Share {
  switch (name) {
    case 'functionDeclarations':
      return rewrittenShare(value);
    // Run by the holder; the functions it declares of itself have no published length.
    case 'computerUse':
      return WHOLE_WINDOW;
    default:
      return unboundedShare('what this tool can cost has no stated maximum');
  }
}

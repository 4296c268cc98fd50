import { type AllowList, allow, type Effect, harmless, judge } from '../bounds/allow-list.ts';
import {
  NOTHING,
  rewrittenShare,
  type Share,
  shareBelow,
  shareOfEach,
  textShare,
  together,
  unboundedShare,
  WHOLE_WINDOW,
} from '../bounds/input-share.ts';
import { isCount } from '../bounds/output-bound.ts';
import { isJsonObject, type JsonObject } from '../json.ts';

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
    'mediaResolution', // the hold of an image covers the largest
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

/** All tools of a call. Tools that Google runs have no maximum of rounds, and some have a fee for each use. */
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
    // The holder runs it. The length of the functions that it declares is not published.
    case 'computerUse':
      return WHOLE_WINDOW;
    default:
      return unboundedShare('the cost of this tool has no stated maximum');
  }
}

/**
 * `contents`, `content` or `systemInstruction`, its names already in their one form (`@google/genai` 3.1, Content
 * and Part). Lists of one may be given as their element.
 */
export const geminiContent = (contents: unknown): Share => {
  if (contents === undefined || typeof contents === 'string') return textShare(contents);
  return shareOfEach(contents, (content) => {
    if (!isJsonObject(content)) return unboundedShare('is not an object');
    const effect = judge(harmless('role', 'parts'), content);
    return together([{ effect, extra: 0 }, shareBelow('parts', shareOfEach(content.parts ?? [], partShare))]);
  });
};

const PART: AllowList = harmless(
  'audioTranscription',
  'codeExecutionResult',
  'executableCode',
  'fileData',
  'functionCall',
  'functionResponse',
  'inlineData',
  'mediaProcessing',
  'mediaResolution',
  'partMetadata',
  'speechMetadata',
  'text',
  'thought',
  'thoughtSignature',
  'toolCall',
  'toolResponse',
  'videoMetadata',
);

function partShare(part: unknown): Share {
  if (!isJsonObject(part)) return unboundedShare('is not an object');
  const { inlineData, functionCall, functionResponse, toolCall, toolResponse, text, ...rest } = part;
  return together([
    { effect: judge(PART, part), extra: 0 },
    textShare([text, rest]),
    // A part may ask for a count of tokens of its own.
    mediaShare(part, isJsonObject(part.mediaResolution) && part.mediaResolution.numTokens !== undefined),
    ...[functionCall, toolCall, toolResponse].map(rewrittenShare),
    shareBelow('functionResponse', functionResponseShare(functionResponse)),
  ]);
}

/** A function's answer may hold media of its own. */
function functionResponseShare(response: unknown): Share {
  if (!isJsonObject(response)) return NOTHING;
  const { parts, ...rest } = response;
  return together([rewrittenShare(rest), shareBelow('parts', shareOfEach(parts ?? [], partShare))]);
}

/**
 * Most tokens of an image. Gemini 3 takes 280 to 2,240 by its resolution; earlier models cut what is larger than 384
 * pixels into tiles of 768 × 768, 258 tokens each, after scaling it down to 3,072 × 3,072: 16 tiles.
 * https://ai.google.dev/gemini-api/docs/media-resolution#token-counts, …/docs/tokens#multimodal-tokens
 */
const IMAGE_TOKENS = 16 * 258;

/** The gateway cannot measure a video, a recording, a PDF or a stored file. */
function mediaShare({ inlineData, fileData, mediaProcessing }: JsonObject, ownCount: boolean): Share {
  if (mediaProcessing === 'AGENTIC') {
    return shareBelow(
      'mediaProcessing',
      unboundedShare('the number of times that the model looks again has no stated maximum'),
    );
  }
  if (fileData !== undefined) return WHOLE_WINDOW;
  if (inlineData === undefined) return NOTHING;
  const { mimeType, data } = isJsonObject(inlineData) ? inlineData : {};
  if (typeof mimeType !== 'string' || typeof data !== 'string') return WHOLE_WINDOW;
  // Base64 is longer than the text that it encodes.
  if (/^text\//i.test(mimeType)) return NOTHING;
  const isImage = /^image\/(png|jpeg|webp|heic|heif)$/i.test(mimeType);
  return isImage && !ownCount ? { effect: 'harmless', extra: IMAGE_TOKENS - data.length } : WHOLE_WINDOW;
}

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
import { type Dialect, fieldName } from '../dialect.ts';
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

/** Fields below which the caller chooses the names. They stay as they are. */
const CALLERS_OWN: ReadonlySet<string> = new Set([
  'args',
  'labels',
  'parameters',
  'parametersJsonSchema',
  'partMetadata',
  'response',
  'responseJsonSchema',
  '_responseJsonSchema',
  'responseSchema',
]);

const PROTO: Dialect = { id: 'proto', settings: [], protoJson: { callersOwn: [] } };

/** The one form of a field's name: `generation_config` and `generationConfig` are `generationConfig`. */
export const protoName = (name: string): string => fieldName(PROTO, name);

/**
 * A body with each field under its one name, and without those that are null: in protocol-buffer JSON both mean
 * that the field is not set (https://protobuf.dev/programming-guides/json/#field-names).
 */
export function withProtoNames(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withProtoNames);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, inner]) => inner !== null)
      .map(([key, inner]) => {
        const name = protoName(key);
        return [name, CALLERS_OWN.has(name) ? inner : withProtoNames(inner)];
      }),
  );
}

/** A field that one object has under two names. The API reads one of them, and does not document which. */
export function namedTwice(value: unknown): string | undefined {
  if (Array.isArray(value)) return first(value.map(namedTwice));
  if (!isJsonObject(value)) return undefined;
  return (
    repeated(Object.keys(value).map(protoName)) ??
    first(
      Object.entries(value).map(([key, inner]) =>
        CALLERS_OWN.has(protoName(key)) ? undefined : namedTwice(inner),
      ),
    )
  );
}

/** The first name that a list contains twice. */
function repeated(names: readonly string[]): string | undefined {
  const seen = new Set<string>();
  return names.find((name) => seen.size === seen.add(name).size);
}

/** A body with one field of an inner object set. All spellings of the object and of the field become one. */
export function withField(
  body: JsonObject,
  [outer, inner]: readonly [string, string],
  value: unknown,
): JsonObject {
  const held = Object.entries(body).filter(([key]) => protoName(key) === outer);
  const rest = Object.entries(body).filter(([key]) => protoName(key) !== outer);
  const kept = held
    .flatMap(([, object]) => (isJsonObject(object) ? Object.entries(object) : []))
    .filter(([key]) => protoName(key) !== inner);
  return Object.fromEntries([...rest, [outer, Object.fromEntries([...kept, [inner, value]])]]);
}

const first = (found: readonly (string | undefined)[]): string | undefined =>
  found.find((name) => name !== undefined);

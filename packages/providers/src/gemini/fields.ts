import { type Effect, judge, judgeObject } from '../bounds/allow-list.ts';
import { apart, compileGroup, compileWith } from '../bounds/compile-group.ts';
import {
  NOTHING,
  rewrittenShare,
  type Share,
  shareBelow,
  shareOfEach,
  textShare,
  together,
  unboundedShare,
  unknownField,
  WHOLE_WINDOW,
} from '../bounds/input-share.ts';
import { isCount } from '../bounds/output-bound.ts';
import * as FACTS from '../facts/gemini.ts';
import { isJsonObject, type JsonObject } from '../json.ts';

const count = (value: unknown): Effect =>
  isCount(value) ? 'harmless' : { unbounded: 'is not a whole number above 0' };

/** The judgement of `generationConfig`, whose schemas are written into the prompt. */
export const geminiGeneration = judgeObject(
  compileGroup(FACTS.GENERATION, {
    schema: apart(rewrittenShare),
    count,
    textOnly: (value) =>
      Array.isArray(value) && value.every((modality) => modality === 'TEXT')
        ? 'harmless'
        : { unbounded: 'images and speech are not bounded by maxOutputTokens' },
    thinking: judgeObject(
      compileGroup(FACTS.THINKING, {
        budget: (budget) =>
          budget === 0 || budget === -1 || isCount(budget)
            ? 'harmless'
            : { unbounded: 'is neither -1 nor a whole number' },
      }),
    ),
  }),
);

/** All tools of a call. Tools that Google runs have no maximum of rounds, and some have a fee for each use. */
export const geminiTools = (tools: unknown): Share => {
  if (tools === undefined) return NOTHING;
  return shareOfEach(tools, (tool) =>
    isJsonObject(tool)
      ? together(Object.entries(tool).map(([name, value]) => shareBelow(name, toolShare(name, value))))
      : unboundedShare('is not an object'),
  );
};

const toolShare = (name: string, value: unknown): Share =>
  TOOLS.get(name)?.(value) ??
  (FACTS.UNBOUNDED_TOOLS.names.includes(name)
    ? unboundedShare('the cost of this tool has no stated maximum')
    : unknownField('the cost of this tool is not known'));

const TOOLS = compileWith(FACTS.TOOLS, () => (_: unknown) => WHOLE_WINDOW, { rewritten: rewrittenShare });

/**
 * `contents`, `content` or `systemInstruction`. The names of its fields are already normalised (`@google/genai` 3.1,
 * Content and Part). A list with one element may be given as the element.
 */
export const geminiContent = (contents: unknown): Share => {
  if (contents === undefined || typeof contents === 'string') return textShare(contents);
  return shareOfEach(contents, (content) => {
    if (!isJsonObject(content)) return unboundedShare('is not an object');
    const effect = judge(CONTENT, content);
    return together([{ effect, extra: 0 }, shareBelow('parts', shareOfEach(content.parts ?? [], partShare))]);
  });
};

const CONTENT = compileGroup(FACTS.CONTENT, { parts: apart(partShare) });

const PART = compileGroup(FACTS.PART, {
  media: apart(mediaShare),
  rewritten: apart(rewrittenShare),
  functionResponse: apart(functionResponseShare),
});

function partShare(part: unknown): Share {
  if (!isJsonObject(part)) return unboundedShare('is not an object');
  const { inlineData, functionCall, functionResponse, toolCall, toolResponse, text, ...rest } = part;
  return together([
    { effect: judge(PART, part), extra: 0 },
    textShare([text, rest]),
    // A part may request its own count of tokens.
    mediaShare(part, isJsonObject(part.mediaResolution) && part.mediaResolution.numTokens !== undefined),
    ...[functionCall, toolCall, toolResponse].map(rewrittenShare),
    shareBelow('functionResponse', functionResponseShare(functionResponse)),
  ]);
}

/** A function's answer may contain media. */
function functionResponseShare(response: unknown): Share {
  if (!isJsonObject(response)) return NOTHING;
  const { parts, ...rest } = response;
  return together([rewrittenShare(rest), shareBelow('parts', shareOfEach(parts ?? [], partShare))]);
}

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
  return isImage && !ownCount
    ? { effect: 'harmless', extra: FACTS.IMAGE_TOKENS.most - data.length }
    : WHOLE_WINDOW;
}

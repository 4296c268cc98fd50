import { type AllowList, allow, asUnbounded, judge } from '../bounds/allow-list.ts';
import { compileGroup } from '../bounds/compile-group.ts';
import { countIn } from '../bounds/output-bound.ts';
import { type Dialect, MODEL, NAMES, NO_OUTPUT } from '../dialect.ts';
import type { ByModel } from '../facts/fact.ts';
import * as FACTS from '../facts/openai/images.ts';
import { countOf, isJsonObject, type JsonObject, objectIn, readObject, textOf } from '../json.ts';
import { undated } from '../model-names.ts';
import { type Bounded, countsRead, type DialectSpend, type EventReader, type Usage } from '../spend.ts';
import { IMAGES_COUNTS } from '../usage/known.ts';
import { unknownCounts } from '../usage/known-counts.ts';
import type { Statement } from '../usage/record.ts';
import { modelIn } from './chat.ts';
import { isErrorOf, type OpenaiRules } from './rules.ts';
import { apiParts, stated } from './usage.ts';

/**
 * Image generation (`openai` SDK, resources/images). A model of GPT Image costs tokens, which OpenAI publishes by quality and
 * size. Any other model costs its price for each image (`images`), if its price states one.
 */
export const openaiImages = (
  id: string,
  { errors }: Pick<OpenaiRules, 'errors'>,
  fields: AllowList = NO_FIELDS,
): Dialect => ({
  id,
  settings: [
    MODEL,
    { at: ['n'], names: NAMES.count },
    ...NO_OUTPUT.filter(({ names }) => names !== NAMES.count),
  ],
  spend: imagesSpend(errors, allow(FIELDS, fields)),
});

function imagesSpend(errors: OpenaiRules['errors'], fields: AllowList): DialectSpend {
  return {
    model: modelIn,
    streams: (body) => body.stream === true,
    boundBody: (body, { bytes }) => {
      const effect = judge(fields, body);
      return typeof effect === 'object' ? { unbounded: asUnbounded(effect) } : boundImages(body, bytes);
    },
    readAnswer,
    readStream,
    isOwnError: (answer) => isErrorOf(errors, answer),
  };
}

const NO_FIELDS: AllowList = new Map();
const { most: MOST_IMAGES } = FACTS.IMAGES_OF_CALL;
const { most: PARTIAL_TOKENS } = FACTS.PARTIAL_TOKENS;

const FIELDS = compileGroup(FACTS.IMAGE_FIELDS, {
  images: (value, { stream }) => {
    if (countIn({ value }, 'value', MOST_IMAGES) === undefined)
      return { unbounded: `is not a whole number from 1 to ${MOST_IMAGES}` };
    // How a stream of several images reports their usage is not documented.
    return stream === true && value !== 1 ? { unbounded: 'is more than 1 in a stream' } : 'harmless';
  },
});

function boundImages(body: JsonObject, bytes: number): Bounded {
  const n = countIn(body, 'n', MOST_IMAGES) ?? MOST_IMAGES;
  const tokens = TOKENS.get(undated(textOf(body.model)));
  if (!tokens) return { bound: { inputTokens: 0, fees: { images: n }, output: undefined } };
  const each = tokens(textOf(body.quality), textOf(body.size));
  if (each === undefined) {
    const reason = 'OpenAI publishes the cost of this model for quality low, medium or high';
    const param = FACTS.SIZES.names.includes(textOf(body.size)) ? 'quality' : 'size';
    return { unbounded: { param, reason: `${reason}, and size ${FACTS.SIZES.names.join(', ')}` } };
  }
  const asked = each + (typeof body.partial_images === 'number' ? body.partial_images : 0) * PARTIAL_TOKENS;
  // Each of several images is made from the whole prompt.
  return {
    bound: {
      inputTokens: n * bytes,
      fees: {},
      output: { asked, least: asked, times: n, coversReasoning: true },
    },
  };
}

/** Output tokens of an image by its quality, in the order of sizes. */
type Table = ReadonlyMap<string, readonly number[]>;

const tableOf = ({ models }: ByModel<readonly number[]>): Table => new Map(Object.entries(models));

const FIRST_MODELS = tableOf(FACTS.FIRST_MODELS);
const SECOND_MODEL = tableOf(FACTS.SECOND_MODEL);

const published = (table: Table, quality: string, size: string): number | undefined =>
  table.get(quality)?.[FACTS.SIZES.names.indexOf(size)];

/** The first models have only these sizes and qualities. Any other call of them costs at most the highest price. */
const ofFirstModels = (quality: string, size: string): number =>
  published(FIRST_MODELS, quality, size) ??
  Math.max(...(FIRST_MODELS.get(quality) ?? [...FIRST_MODELS.values()].flat()));

const COUNTS = {
  ofFirstModels,
  ofSecondModel: (quality: string, size: string) => published(SECOND_MODEL, quality, size),
};

/** Most output tokens of an image, by model. */
const TOKENS = new Map(
  Object.entries(FACTS.COUNTED_MODELS.models).map(([model, by]) => [model, COUNTS[by]] as const),
);

/** The tokens that an answer reports, else the number of its images. */
function readAnswer(answer: unknown): Statement | undefined {
  if (!isJsonObject(answer)) return undefined;
  const { usage, data } = answer;
  const images = Array.isArray(data) ? data.length : 0;
  const unknown = unknownCounts(usage, IMAGES_COUNTS);
  const content = images > 0 ? 'written' : undefined;
  if (isJsonObject(usage) && usage.output_tokens !== undefined)
    return { ...stated(answer, tokensIn(usage)), parts: apiParts(usage), content, unknown };
  return images > 0 ? { ...stated(answer, { images }), content, unknown } : undefined;
}

const COMPLETED = 'image_generation.completed';
/** The name of an error's event, or its field. */
const ERROR = /^event: ?error\b|"error"/;
/** An event begins with its names and ends with its usage. Between them is a picture of megabytes. */
const NAMES_END = 1_024;

/** Reads the one event that has usage (`openai` SDK, ImageGenCompletedEvent). Others hold pictures and are not parsed. */
function readStream(): EventReader {
  let completed = 0;
  let failed = false;
  return {
    mayBeWritten: () => false,
    matters: (event) => event.includes(COMPLETED) || ERROR.test(event.toString('latin1', 0, NAMES_END)),
    event: (data, name) => {
      failed ||= name === 'error' || data.startsWith('{"error"');
      const event = data.includes(COMPLETED) ? readObject(data) : undefined;
      if (event === undefined) return undefined;
      completed++;
      return { ...readAnswer({ usage: event.usage }), content: 'written' };
    },
    isWhole: () => completed === 1 && !failed,
  };
}

/** `openai` SDK, ImagesResponse.Usage. Output without details counts as image tokens, the most expensive kind. */
function tokensIn(usage: JsonObject): Usage | undefined {
  if (usage.input_tokens === undefined) return undefined;
  const output = countOf(usage, 'output_tokens');
  const { image_tokens: images = output } = objectIn(usage, 'output_tokens_details');
  const counts = countsRead({
    input_tokens: countOf(usage, 'input_tokens'),
    input_image_tokens: countOf(objectIn(usage, 'input_tokens_details'), 'image_tokens'),
    output_tokens: output,
    output_image_tokens: countOf({ images }, 'images'),
    total_tokens: countOf(usage, 'total_tokens'),
  });
  return counts === 'unreadable' ? undefined : counts;
}

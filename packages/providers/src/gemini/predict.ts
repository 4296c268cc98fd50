import { allow, asUnbounded, harmless, judge, judgeEach, type Rule } from '../bounds/allow-list.ts';
import { countIn } from '../bounds/output-bound.ts';
import { type Dialect, NAMES, NO_OUTPUT } from '../dialect.ts';
import { isJsonObject, objectIn } from '../json.ts';
import { geminiErrors } from './errors.ts';
import { isOwnError, modelIn, modelInPath } from './generate.ts';

/**
 * Imagen: each image has a price (`images`). https://ai.google.dev/gemini-api/docs/imagen, and the fields that `@google/genai`
 * sends (generateImages).
 */
export const geminiPredict: Dialect = {
  id: 'gemini-predict',
  errors: geminiErrors,
  modelInPath: modelInPath(),
  settings: [
    { at: ['parameters', 'sampleCount'], names: NAMES.count },
    ...NO_OUTPUT.filter(({ names }) => names !== NAMES.count),
  ],
  spend: {
    model: (_body, path) => modelIn(path),
    streams: () => false,
    boundBody: (body) => {
      const effect = judge(FIELDS, body);
      if (typeof effect === 'object') return { unbounded: asUnbounded(effect) };
      const images = objectIn(body, 'parameters').sampleCount ?? MOST_IMAGES;
      return { bound: { inputTokens: 0, fees: { images: Number(images) }, output: undefined } };
    },
    readAnswer: (answer) => {
      const { predictions } = isJsonObject(answer) ? answer : {};
      if (!Array.isArray(predictions) || predictions.length === 0) return undefined;
      return { model: undefined, usage: { images: predictions.length } };
    },
    isOwnError,
  },
};

/** A call without `sampleCount` gets as many. */
const MOST_IMAGES = 4;

const PARAMETERS = allow(
  harmless(
    'aspectRatio',
    'sampleImageSize',
    'guidanceScale',
    'safetySetting',
    'personGeneration',
    'language',
  ),
  harmless('includeSafetyAttributes', 'includeRaiReason', 'outputOptions'),
  {
    sampleCount: (_, parameters) =>
      countIn(parameters, 'sampleCount', MOST_IMAGES) === undefined
        ? { unbounded: `is not a whole number from 1 to ${MOST_IMAGES}` }
        : 'harmless',
  },
);

const parameters: Rule = (value) =>
  isJsonObject(value) ? judge(PARAMETERS, value) : { unbounded: 'is not an object' };

const instances: Rule = (value) =>
  Array.isArray(value) && value.length === 1
    ? judgeEach(value, (each) => judge(harmless('prompt'), each))
    : { unbounded: 'is not a list of one prompt' };

const FIELDS = allow({ instances, parameters });

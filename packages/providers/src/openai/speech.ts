import { asUnbounded, judge } from '../bounds/allow-list.ts';
import { compileGroup } from '../bounds/compile-group.ts';
import { type Dialect, MODEL, NO_OUTPUT } from '../dialect.ts';
import { SPEECH_FIELDS } from '../facts/openai/completions.ts';
import { textOf } from '../json.ts';
import type { DialectSpend } from '../spend.ts';
import { modelIn } from './chat.ts';
import { isErrorOf, type OpenaiRules } from './rules.ts';

/**
 * Speech (`openai` SDK, resources/audio/speech). A model that is priced by the characters of the text has a bound. Others, such
 * as gpt-4o-mini-tts, are priced by tokens of sound, and no field bounds how long they speak.
 */
export const openaiSpeech = (id: string, { errors }: Pick<OpenaiRules, 'errors'>): Dialect => ({
  id,
  settings: [MODEL, ...NO_OUTPUT],
  spend: speechSpend(errors),
});

/** A character has at least one byte. The answer is sound and reports no usage, so the reserved cost is charged. */
function speechSpend(errors: OpenaiRules['errors']): DialectSpend {
  return {
    least: { input: 'x' },
    model: modelIn,
    // Sound is played while it arrives.
    streams: () => true,
    boundBody: (body) => {
      const effect = judge(FIELDS, body);
      if (typeof effect === 'object') return { unbounded: asUnbounded(effect) };
      const characters = Buffer.byteLength(textOf(body.input));
      return { bound: { inputTokens: 0, fees: { characters }, output: undefined } };
    },
    readAnswer: () => undefined,
    isOwnError: (answer) => isErrorOf(errors, answer),
  };
}

const FIELDS = compileGroup(SPEECH_FIELDS, {
  characters: (value) => (typeof value === 'string' ? 'harmless' : { unbounded: 'is not text' }),
});

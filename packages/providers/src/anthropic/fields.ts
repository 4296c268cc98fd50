import { type AllowList, type Effect, judge, judgeEach, unknownEffect } from '../bounds/allow-list.ts';
import { apart, compileGroup } from '../bounds/compile-group.ts';
import { isCount } from '../bounds/output-bound.ts';
import * as FACTS from '../facts/anthropic.ts';
import { isJsonObject, textOf } from '../json.ts';

const object =
  (list: AllowList) =>
  (value: unknown): Effect =>
    isJsonObject(value) ? judge(list, value) : { unbounded: 'is not an object' };

export const anthropicThinking = object(
  compileGroup(FACTS.THINKING, {
    budget: (budget) => (isCount(budget) ? 'harmless' : { unbounded: 'is not a whole number above 0' }),
  }),
);

const EDITS = compileGroup(FACTS.EDITS);

/** The judgements of fields by their value alone. */
export const JUDGED = {
  thinking: anthropicThinking,
  thread: object(compileGroup(FACTS.THREAD)),
  editing: object(
    new Map([
      [
        'edits',
        (edits: unknown) =>
          judgeEach(edits, ({ type }) =>
            EDITS.has(textOf(type))
              ? 'harmless'
              : unknownEffect('the cost of this edit is not known', 'type'),
          ),
      ],
    ]),
  ),
  turnConfig: object(compileGroup(FACTS.TURN_CONFIG)),
};

/** The judgement of `output_config`, whose format `judgeFormat` bounds. */
export const outputConfig = (judgeFormat: (body: never) => unknown) =>
  object(compileGroup(FACTS.OUTPUT_CONFIG, { format: apart(judgeFormat) }));

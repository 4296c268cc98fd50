import { judgeEach, judgeObject, unknownEffect } from '../bounds/allow-list.ts';
import { apart, compileGroup } from '../bounds/compile-group.ts';
import { isCount } from '../bounds/output-bound.ts';
import * as FACTS from '../facts/anthropic.ts';
import { textOf } from '../json.ts';

export const anthropicThinking = judgeObject(
  compileGroup(FACTS.THINKING, {
    budget: (budget) => (isCount(budget) ? 'harmless' : { unbounded: 'is not a whole number above 0' }),
  }),
);

const EDITS = compileGroup(FACTS.EDITS);

/** The judgements of fields by their value alone. */
export const JUDGED = {
  thinking: anthropicThinking,
  thread: judgeObject(compileGroup(FACTS.THREAD)),
  editing: judgeObject(
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
  turnConfig: judgeObject(compileGroup(FACTS.TURN_CONFIG)),
};

/** The judgement of `output_config`, whose format `judgeFormat` bounds. */
export const outputConfig = (judgeFormat: (body: never) => unknown) =>
  judgeObject(compileGroup(FACTS.OUTPUT_CONFIG, { format: apart(judgeFormat) }));

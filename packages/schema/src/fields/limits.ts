import * as z from 'zod';
import {
  LIMIT_NAMES,
  type LimitName,
  limitKind,
  MCP_LIMIT_NAMES,
  type McpLimitName,
} from '../limit-kinds.ts';
import { maxUses, microusd, optional } from './fields.ts';
import { expected } from './invalid-request.ts';

const forEach = <N extends LimitName, F>(names: readonly N[], fieldOf: (name: N) => F) =>
  Object.fromEntries(names.map((name) => [name, fieldOf(name)])) as { [K in N]: F };

/** The schema of a value of this limit, with its range. */
function rangeOf(name: LimitName): z.ZodInt {
  if (name === 'cost_limit') return microusd;
  const { least, most } = limitKind(name);
  const range = expected(`a whole number from ${least} to ${most}`);
  return z.int(range).min(least, range).max(most, range);
}

function askedField(name: LimitName) {
  const { description, example } = limitKind(name);
  return optional(rangeOf(name)).meta({
    description,
    ...(example === undefined ? {} : { examples: [example] }),
  });
}

const askedUses = optional(maxUses)
  .transform((value) => value ?? -1)
  .meta({ description: limitKind('max_uses').description, default: -1 });

/** The limits in a request for a URL of an LLM provider, and for a bundle of MCP servers. */
export const llmLimits = { ...forEach(LIMIT_NAMES, askedField), max_uses: askedUses };
export const mcpLimits = {
  ...forEach<McpLimitName, ReturnType<typeof askedField>>(MCP_LIMIT_NAMES, askedField),
  max_uses: askedUses,
};

const USES = expected(`-1 (unlimited) or a whole number from 0 to ${Number.MAX_SAFE_INTEGER}`);

/** The limits in a change. Those that are left out stay as they are. */
export const changedFields = {
  ...forEach(LIMIT_NAMES, (name) =>
    rangeOf(name).nullable().optional().meta({ description: 'null: no limit.' }),
  ),
  max_uses: z.int(USES).min(-1, USES).nullable().optional().meta({
    description: 'All its calls, those that it has had included. null, -1: unlimited. 0: no call passes.',
  }),
  cost_limit: microusd.nullable().optional().meta({
    description: 'Microdollars over all its calls, those that it has had included. null: no limit.',
  }),
};

/** The limits in an answer. */
export const shownFields = {
  ...forEach(LIMIT_NAMES, (name) =>
    z
      .int()
      .min(0)
      .nullable()
      .meta({ description: `${unitOf(name)}null: no limit.` }),
  ),
  max_uses: z.int().min(0).nullable().meta({ description: 'null: no limit.' }),
};

/** The highest limits in the policy of an API key. */
export const highestFields = forEach(LIMIT_NAMES, (name) => {
  const needed = limitKind(name).urls === 'all' ? 'A URL' : 'A URL of an LLM provider';
  return rangeOf(name).meta({ description: `${unitOf(name)}${needed} must have a ${name}.` });
});

/** The range of a field that limits a URL. */
export type LimitRange = {
  readonly minimum: number;
  readonly maximum: number;
  readonly default: number | null;
  readonly required: boolean;
};

/** The ranges of limits without a policy. */
const rangesOf = <N extends LimitName>(names: readonly N[]) =>
  forEach(names, (name): LimitRange => {
    const { least: minimum, most: maximum } = limitKind(name);
    return { minimum, maximum, default: null, required: false };
  });
export const llmRanges = rangesOf(LIMIT_NAMES);
export const mcpRanges = rangesOf(MCP_LIMIT_NAMES);

export const limitRange = z
  .strictObject({
    minimum: z.int(),
    maximum: z.int(),
    default: z
      .int()
      .nullable()
      .meta({ description: 'The value of a request without the field. null: no limit.' }),
    required: z.boolean().meta({ description: 'Whether a request without the field is refused.' }),
  })
  .meta({ id: 'LimitRange' });

/** The same ranges in an answer. */
const rangeFieldsOf = <N extends LimitName>(names: readonly N[]) =>
  forEach(names, (name) => {
    const { unit } = limitKind(name);
    return unit === undefined ? limitRange : limitRange.meta({ description: `${unit}.` });
  });
export const llmRangeFields = rangeFieldsOf(LIMIT_NAMES);
export const mcpRangeFields = rangeFieldsOf(MCP_LIMIT_NAMES);

function unitOf(name: LimitName): string {
  const { unit } = limitKind(name);
  return unit === undefined ? '' : `${unit}. `;
}

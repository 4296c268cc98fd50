import * as z from 'zod';
import { microusd, NO_NUL, optional, storable } from '../../fields/fields.ts';
import { expected } from '../../fields/invalid-request.ts';
import { isJsonObject } from '../../json.ts';

export const MCP_TOOLS_MAX = 500;
/** How many tools may have conditions, and how many of them one tool. */
const CONDITIONED_TOOLS_MAX = 50;
const CONDITIONS_MAX = 20;
const NAME_MAX_CHARS = 128;
const ARGUMENT_MAX_CHARS = 1_000;
/** Gateways compare all spellings of a name in this form. The syllables and letters of living languages become at most four characters. */
const NAME_DECOMPOSED_MAX_CHARS = 512;

/** The name of a server, a tool or an argument. */
export const mcpName = z
  .string(expected('a string'))
  .refine((text) => text.length >= 1 && [...text].length <= NAME_MAX_CHARS, {
    error: `expected 1 to ${NAME_MAX_CHARS} characters`,
    abort: true,
  })
  .refine((text) => text.isWellFormed() && !/\p{Cc}/u.test(text) && text !== '__proto__', {
    error: 'expected a name without control characters, other than __proto__',
    abort: true,
  })
  .refine((text) => text.normalize('NFKD').length <= NAME_DECOMPOSED_MAX_CHARS, {
    error: `expected at most ${NAME_DECOMPOSED_MAX_CHARS} characters in Unicode's form NFKD`,
    abort: true,
  })
  .refine((text) => !/\p{M}{31}/u.test(text.normalize('NFKD')), {
    error: 'expected at most 30 combining marks in a row',
  })
  .meta({
    minLength: 1,
    maxLength: NAME_MAX_CHARS,
    pattern: '^[^\\x00-\\x1f\\x7f-\\x9f]*$',
    not: { const: '__proto__' },
  });

export const toolNames = z
  .array(mcpName, expected('an array of names of tools'))
  .max(MCP_TOOLS_MAX, `expected at most ${MCP_TOOLS_MAX} tools`);

/** An object from names to values. The number of names is checked before each value is read. */
const byName = <T extends z.ZodType>(
  id: string,
  value: T,
  what: string,
  { least = 0, most }: { readonly least?: number; readonly most: number },
) =>
  z
    .custom<Record<string, unknown>>(isJsonObject, expected(`an object: ${what}`))
    .refine((object) => Object.keys(object).length >= least, {
      error: `expected at least ${least} of: ${what}`,
      abort: true,
    })
    .refine((object) => Object.keys(object).length <= most, {
      error: `expected at most ${most} of: ${what}`,
      abort: true,
    })
    // Zod's record ignores this name.
    .refine((object) => !Object.hasOwn(object, '__proto__'), {
      error: 'expected names other than __proto__',
      abort: true,
    })
    .pipe(z.record(mcpName, value))
    .meta({ shownAs: z.record(mcpName, value).meta({ id, minProperties: least, maxProperties: most }) });

const toolPrices = byName('ToolPrices', microusd, 'name of a tool → microdollars', { most: MCP_TOOLS_MAX });

const argumentText = storable(
  z.string(expected('a string')).refine((text) => [...text].length <= ARGUMENT_MAX_CHARS, {
    error: `expected at most ${ARGUMENT_MAX_CHARS} characters`,
    abort: true,
  }),
).meta({ maxLength: ARGUMENT_MAX_CHARS, pattern: NO_NUL });

const EXACT = expected(`a number from ${Number.MIN_SAFE_INTEGER} to ${Number.MAX_SAFE_INTEGER}`);
/** Readers of JSON differ on numbers that a double does not hold exactly. */
const exactNumber = z.number(EXACT).min(Number.MIN_SAFE_INTEGER, EXACT).max(Number.MAX_SAFE_INTEGER, EXACT);

/** One condition of an argument. JSON Schema: exactly one of the two. */
const argumentCondition = z
  .strictObject(
    {
      equals: z
        .union(
          [argumentText, exactNumber, z.boolean(), z.null()],
          expected('a string, a number, true, false or null'),
        )
        .optional()
        .meta({ description: 'The argument is this value, of this type.' }),
      prefix: argumentText.min(1, 'expected at least one character').optional().meta({
        description:
          'The argument is a string that begins with this text, character by character: a path with .. is not resolved.',
      }),
    },
    expected('an object with equals or prefix'),
  )
  .refine((condition) => Object.keys(condition).length === 1, { error: 'expected equals or prefix' })
  .meta({ id: 'ArgumentCondition', minProperties: 1, maxProperties: 1 });
export type ArgumentCondition = z.infer<typeof argumentCondition>;

const conditionsOfTool = byName(
  'ArgumentConditions',
  argumentCondition,
  'name of an argument → its condition',
  {
    least: 1,
    most: CONDITIONS_MAX,
  },
);
export const toolArguments = byName('ToolArguments', conditionsOfTool, 'name of a tool → its arguments', {
  least: 1,
  most: CONDITIONED_TOOLS_MAX,
});

/** The conditions of arguments in an answer, by the name of a tool and the name of an argument. */
export const mcpArguments = z
  .record(z.string(), z.record(z.string(), argumentCondition).meta({ id: 'StoredConditions' }))
  .meta({ id: 'StoredArguments' });
export type McpArguments = z.infer<typeof mcpArguments>;

/** The prices of a server's calls, in microdollars. */
export const mcpPricing = z
  .strictObject(
    {
      default: optional(microusd).meta({
        description:
          'Microdollars of a call without its own price. Left out: the price that the operator set.',
      }),
      tools: optional(toolPrices).meta({ description: 'Microdollars by the name of a tool.' }),
    },
    expected('an object with default, tools or both'),
  )
  .meta({ id: 'McpPricing' });
export type McpPricing = z.infer<typeof mcpPricing>;

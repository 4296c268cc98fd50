import * as z from 'zod';
import {
  apiKeyId,
  externalId,
  grantId,
  microusd,
  requestId,
  sessionId,
  TIME_FORM,
  time,
  unixSeconds,
} from '../fields/fields.ts';
import { pageOf, pageQuery } from '../fields/page.ts';
import { refusal } from './refused.ts';
import { name } from './reports.ts';

/** The kinds of rows of the ledger, and calls that were refused. */
export const CALL_OUTCOMES = ['settled', 'expired', 'refunded', 'refused'] as const;
/** `all`: rows of every kind. */
const ASKED_OUTCOMES = [...CALL_OUTCOMES, 'all'] as const;

/** Query of `GET /v1/calls`. */
export const callsQuery = pageQuery.extend({
  from: time.optional().meta({ description: `Calls settled at this time or later. ${TIME_FORM}.` }),
  to: time.optional().meta({ description: `Calls settled before this time. ${TIME_FORM}.` }),
  external_user: externalId.optional().meta({ description: 'Only calls of this external_user.' }),
  session_id: sessionId.optional().meta({ description: 'Only calls of this session.' }),
  grant_id: grantId.optional().meta({ description: 'Only calls of this grant.' }),
  api_key: apiKeyId.optional().meta({ description: 'Only calls of URLs that this API key issued.' }),
  virtual_key: name.optional().meta({ description: 'Only calls with this virtual key.' }),
  provider: name.optional().meta({ description: 'Only calls of this provider; `mcp` for MCP servers.' }),
  model: name.optional().meta({ description: 'Only calls of this model.' }),
  outcome: z
    .enum(ASKED_OUTCOMES, `expected one of ${ASKED_OUTCOMES.join(', ')}`)
    .optional()
    .meta({
      description:
        'Only rows of this kind. `refused`: calls that the gateway refused. `all`: these and all others in one list. Left out: all but refused ones.',
    }),
  failure: z.string().max(64).optional().meta({
    description: 'Only calls that failed so: an error code, or one of the others of the field `failure`.',
  }),
});
export type CallsQuery = z.output<typeof callsQuery>;

const tokens = z.int().nullable().meta({ description: 'As the provider reported them. null: it did not.' });
const cost = z.int().nullable().meta({
  description: 'Microdollars. Below 0 in a refund. null: the cost is not known, and no limit needed it.',
});

/** A row of the ledger. */
const callFields = {
  request_id: z.guid().nullable().meta({ description: 'The `x-presign-request-id` of the answer.' }),
  started_at: unixSeconds,
  settled_at: unixSeconds,
  outcome: z.enum(CALL_OUTCOMES).meta({
    description:
      '`expired`: the gateway died, and the hold was charged. `refunded`: a row that returns the charge of an MCP call that surely did not run. `refused`: the gateway refused it, and it cost nothing.',
  }),
  failure: z.string().nullable().meta({
    description:
      'How it failed: an error code, `provider_error`, `answer_broken`, `holder_left` or `lease_ended`. null: the holder got a whole answer below 400, or it is an MCP call, which is recorded before it is sent.',
  }),
  status: z.int().nullable().meta({
    description:
      "The provider's status, or that of a refusal. null: the provider gave no answer, or it is an MCP call.",
  }),
  session_id: z.guid(),
  grant_id: z.guid(),
  api_key: z.guid().nullable(),
  virtual_key: z.string().nullable(),
  external_user: z.string().nullable(),
  provider: z.string(),
  model: z.string().nullable(),
  server: z.string().nullable().meta({ description: 'MCP: the name of the server.' }),
  tool: z.string().nullable().meta({ description: 'MCP: the tool or method.' }),
  uses: z.int(),
  input_tokens: tokens,
  output_tokens: tokens,
  hold: microusd.nullable().meta({
    description: 'Microdollars that were held while it ran. null: nothing was held.',
  }),
  cost,
  overrun: microusd.meta({ description: 'Microdollars beyond the hold, which no limit was charged.' }),
  price_list: z
    .strictObject({ source: z.string(), id: z.string() })
    .nullable()
    .meta({ description: 'The list that priced it, as `GET /v1/models` names it. null: no list.' }),
  knowledge: z.string().nullable().meta({
    description:
      'The version of what was known of the provider when it was bounded, as `/readyz` names it: `source:id`. null for MCP.',
  }),
  refusal: refusal.nullable().meta({ description: 'How it was refused. null: it was not.' }),
};

export const callSummary = z.strictObject(callFields).meta({ id: 'Call' });
export type CallSummary = z.infer<typeof callSummary>;

/** The path of one call. */
export const callParams = z.object({ request_id: requestId });

/** Answer of `GET /v1/calls`. */
export const callPage = pageOf(callSummary).meta({ id: 'CallPage' });

/** Answer of `GET /v1/calls/{request_id}`. */
export const callAnswer = z
  .strictObject({
    ...callFields,
    price_lines: z
      .array(
        z.strictObject({
          unit: z.string().meta({
            description:
              'Tokens of one kind without those of other lines (`input_tokens`, `cache_read_tokens`, …), another unit that is billed (`web_searches`), `calls` of MCP tools, or `other` for roundings and rules of the price list that are no rate.',
          }),
          count: z.int(),
          rate: z.int().meta({
            description: 'Microdollars for a million tokens, or for each of another unit.',
          }),
        }),
      )
      .nullable()
      .meta({
        description:
          'How the cost follows from the usage. Their sum, rounded up once, is `cost` + `overrun`. null: the cost does not follow from a usage (a call that the provider refused, or one that is charged its hold), the usage contradicts itself, it is a batch of MCP calls of more than 20 prices, or a gateway before this field served it.',
      }),
    refunds: z
      .array(z.strictObject({ settled_at: unixSeconds, uses: z.int(), cost }))
      .meta({ description: 'Its refunds, oldest first.' }),
  })
  .meta({ id: 'CallWithRefunds' });

/** A usage has fewer kinds of units, and MCP calls have fewer lines. */
const LINES_MOST = 50;

/**
 * The facts of a call in addition to its uses and cost. The gateway writes them, and the issuer copies them to the ledger.
 * The names are short, because Redis stores them with every running call.
 */
export const callRecord = z.object({
  /** Account, session and grant. */
  acc: z.guid(),
  ses: z.guid(),
  grt: z.guid(),
  /** Provider, and the model if it is known. */
  prv: z.string(),
  mod: z.string().optional(),
  /** MCP: the server's name, and the tool that was called (the first one of a batch), else the method. */
  srv: z.string().optional(),
  tol: z.string().optional(),
  /** The call's `x-presign-request-id`. */
  rid: z.guid().optional(),
  /** The caller's own user id, for billing. */
  usr: z.string().optional(),
  /** The provider's status; absent when no answer came. */
  sta: z.int().optional(),
  /** All tokens of input and of output, as the provider reported them. */
  inp: z.int().optional(),
  out: z.int().optional(),
  /** Microdollars of the reported usage beyond the hold. */
  ovr: z.int().optional(),
  /** Microdollars that were held for the call; absent when its URL limits no spending. */
  hld: z.int().optional(),
  /** The price list, as `source:id`; absent when the model has no price. */
  prc: z.string().optional(),
  /** The version of the knowledge that bounded the call, as `source:id`. */
  knw: z.string().optional(),
  /**
   * The cost line by line: unit, count, and rate in microdollars for a million tokens or for each other unit. They only explain
   * the cost, so lines that cannot be read are left out, and the call is recorded without them.
   */
  lin: z
    .array(z.tuple([z.string(), z.int(), z.int()]))
    .max(LINES_MOST)
    .optional()
    .catch(undefined),
  /** How the call failed; absent when its holder got a whole answer below 400. */
  cod: z.string().optional(),
  /** When the call was admitted, Unix milliseconds by the gateway's clock. */
  beg: z.int(),
});

export type CallRecord = z.infer<typeof callRecord>;

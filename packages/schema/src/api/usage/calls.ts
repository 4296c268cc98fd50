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
} from '../../fields/fields.ts';
import { listFormat, pageOf, pageQuery } from '../../fields/page.ts';
import { OUTCOME_NAMES, outcome } from './call-outcomes.ts';
import { refusal } from './refused.ts';
import { metadataFilter, name } from './reports.ts';

/** `failed`: all that fail. `all`: rows of every kind. */
const ASKED_OUTCOMES = [...OUTCOME_NAMES, 'failed', 'refused', 'all'] as const;

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
  server: name.optional().meta({ description: 'Only calls of this MCP server, by its name in the bundle.' }),
  tool: name.optional().meta({ description: 'Only calls of this MCP tool or method.' }),
  metadata: metadataFilter,
  outcome: z
    .enum(ASKED_OUTCOMES, `expected one of ${ASKED_OUTCOMES.join(', ')}`)
    .meta({ id: 'OutcomeFilter' })
    .optional()
    .meta({
      description:
        'Only calls that ended so. `failed`: calls that the gateway admitted and that failed, whatever the cause. `refused`: calls that the gateway refused. `all`: these and all others in one list. Left out: all but refused ones.',
    }),
  failure: z.string().max(64).optional().meta({
    description: 'Only calls that failed so: an error code, or one of the others of the field `failure`.',
  }),
  format: listFormat,
});
export type CallsQuery = z.output<typeof callsQuery>;

const tokens = z.int().nullable().meta({ description: 'As the provider reported them. null: it did not.' });
const cost = z.int().nullable().meta({
  description: 'Microdollars. Below 0 in a refund. null: the cost is not known, and no limit needed it.',
});

const ms = z.int().nullable();

/** The part of `User-Agent` that is kept. */
export const USER_AGENT_MAX_CHARS = 64;
/** The highest `X-Stainless-Retry-Count` that is kept. */
export const RETRY_COUNT_MAX = 999;

/** A row of the ledger. */
const callFields = {
  request_id: z.guid().nullable().meta({ description: 'The `x-presign-request-id` of the answer.' }),
  started_at: unixSeconds,
  settled_at: unixSeconds,
  outcome,
  failure: z.string().nullable().meta({
    description:
      'How it failed, in one word more exact than `outcome`: an error code, `provider_error`, `answer_broken`, `holder_left` or `lease_ended`. null: it did not.',
  }),
  status: z.int().nullable().meta({
    description:
      "The provider's status, or that of a refusal. null: the provider gave no answer, or it is an MCP call under way.",
  }),
  first_byte_ms: ms.meta({
    description: "From the call's arrival to the first byte of the provider's answer. null: there was none.",
  }),
  own_ms: z.number().nullable().meta({
    description:
      'The time that Presign took of it: without its body on the way, and without the provider. null: not recorded.',
  }),
  total_ms: ms.meta({ description: "From the call's arrival to the end of its answer. null: not recorded." }),
  retry_count: z.int().nullable().meta({
    description:
      'Which repetition it was, as the SDK stated it in `X-Stainless-Retry-Count`: 0 is the first try. null: not stated.',
  }),
  user_agent: z
    .string()
    .nullable()
    .meta({
      description: `The first ${USER_AGENT_MAX_CHARS} characters of the header. null: it had none.`,
    }),
  connection: z.guid().nullable().meta({
    description:
      'The socket that it is a turn of: the `x-presign-request-id` of its handshake. null: it had a request of its own.',
  }),
  turn: z.int().nullable().meta({ description: 'Its number on that socket, from 1.' }),
  session_id: z.guid(),
  grant_id: z.guid(),
  api_key: z.guid().nullable(),
  virtual_key: z.string().nullable(),
  external_user: z.string().nullable(),
  metadata: z
    .record(z.string(), z.string())
    .meta({ id: 'CallMetadata' })
    .nullable()
    .meta({ description: 'Values of the keys of `USAGE_METADATA` that its URL had. null: none.' }),
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
    .meta({ id: 'PriceListOfCall' })
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

/** How far apart similar calls are, and how many an answer has. */
export const SIMILAR_SECONDS = 60;
export const SIMILAR_MAX = 100;

/** Answer of `GET /v1/calls/{request_id}/similar`. */
export const similarCalls = z
  .strictObject({
    data: z.array(callSummary).meta({
      description: `Newest first, without the call itself; at most the ${SIMILAR_MAX} newest.`,
    }),
  })
  .meta({ id: 'SimilarCalls' });

/** Answer of `GET /v1/calls/{request_id}`. */
export const callAnswer = z
  .strictObject({
    ...callFields,
    price_lines: z
      .array(
        z
          .strictObject({
            unit: z.string().meta({
              description:
                'Tokens of one kind without those of other lines (`input_tokens`, `cache_read_tokens`, …), another unit that is billed (`web_searches`), `calls` of MCP tools, or `other` for roundings and rules of the price list that are no rate.',
            }),
            count: z.int(),
            rate: z.int().meta({
              description: 'Microdollars for a million tokens, or for each of another unit.',
            }),
          })
          .meta({ id: 'PriceLine' }),
      )
      .nullable()
      .meta({
        description:
          'How the cost follows from the usage. Their sum, rounded up once, is `cost` + `overrun`. null: the cost does not follow from a usage (a call that the provider refused, or one that is charged its hold), the usage contradicts itself, it is a batch of MCP calls of more than 20 prices, or a gateway before this field served it.',
      }),
    refunds: z
      .array(z.strictObject({ settled_at: unixSeconds, uses: z.int(), cost }).meta({ id: 'Refund' }))
      .meta({ description: 'Its refunds, oldest first.' }),
  })
  .meta({ id: 'CallWithRefunds' });

/** A usage has fewer kinds of units, and MCP calls have fewer lines. */
const LINES_MOST = 50;

/** Postgres has room for 24 days of milliseconds. A call takes a day at most. */
const msOfCall = z
  .int()
  .min(0)
  .max(2 ** 31 - 1)
  .optional()
  .catch(undefined);

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
  /** Milliseconds to the first byte of the answer, and to its end; microseconds that the gateway took. */
  fby: msOfCall,
  tot: msOfCall,
  own: msOfCall,
  /** `X-Stainless-Retry-Count` and `User-Agent`, bounded. */
  rty: z.int().min(0).max(RETRY_COUNT_MAX).optional().catch(undefined),
  agt: z.string().optional(),
  /** The socket that it is a turn of, and its number there. */
  con: z.guid().optional(),
  trn: z.int().min(1).optional(),
  /** When the call was admitted, Unix milliseconds by the gateway's clock. */
  beg: z.int(),
});

export type CallRecord = z.infer<typeof callRecord>;

/** How an MCP call ended, which was recorded when it began. */
export const callEnd = callRecord.pick({ sta: true, cod: true, fby: true, tot: true, own: true }).extend({
  /** The id of its charge, which is that of its row. */
  chg: z.string().regex(/^[\da-f]{32}$/),
});
export type CallEnd = z.infer<typeof callEnd>;

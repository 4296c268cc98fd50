import { z } from 'zod';
import { apiKeyId, externalId, microusd, requestId, sessionId, TIME_FORM, time } from './fields.ts';
import { pageOf, pageQuery } from './page.ts';
import { name } from './reports.ts';

/** The kinds of rows of the ledger. */
export const CALL_OUTCOMES = ['settled', 'expired', 'refunded'] as const;

/** Query of `GET /v1/calls`. */
export const callsQuery = pageQuery.extend({
  from: time.optional().meta({ description: `Calls settled at this time or later. ${TIME_FORM}.` }),
  to: time.optional().meta({ description: `Calls settled before this time. ${TIME_FORM}.` }),
  external_user: externalId.optional().meta({ description: 'Only calls of this external_user.' }),
  session_id: sessionId.optional().meta({ description: 'Only calls of this session.' }),
  grant_id: z.guid().optional().meta({ description: 'Only calls of this grant.' }),
  api_key: apiKeyId.optional().meta({ description: 'Only calls of URLs that this API key issued.' }),
  virtual_key: name.optional().meta({ description: 'Only calls with this virtual key.' }),
  provider: name.optional().meta({ description: 'Only calls of this provider; `mcp` for MCP servers.' }),
  model: name.optional().meta({ description: 'Only calls of this model.' }),
  outcome: z
    .enum(CALL_OUTCOMES, `expected one of ${CALL_OUTCOMES.join(', ')}`)
    .optional()
    .meta({ description: 'Only rows of this kind.' }),
});
export type CallsQuery = z.output<typeof callsQuery>;

const seconds = z.number().meta({ description: 'Unix time in seconds.' });
const tokens = z.int().nullable().meta({ description: 'As the provider reported them. null: it did not.' });
const cost = z.int().nullable().meta({
  description: 'Microdollars. Below 0 in a refund. null: the cost is not known, and no limit needed it.',
});

/** A row of the ledger. */
const callFields = {
  request_id: z.guid().nullable().meta({ description: 'The `x-presign-request-id` of the answer.' }),
  started_at: seconds,
  settled_at: seconds,
  outcome: z.enum(CALL_OUTCOMES).meta({
    description:
      '`expired`: the gateway died, and the hold was charged. `refunded`: a row that returns the charge of an MCP call that surely did not run.',
  }),
  failure: z.string().nullable().meta({
    description:
      'How it failed: an error code, `provider_error`, `answer_broken`, `holder_left` or `lease_ended`. null: the holder got a whole answer below 400, or it is an MCP call, which is recorded before it is sent.',
  }),
  status: z
    .int()
    .nullable()
    .meta({ description: "The provider's status. null: it gave no answer, or it is an MCP call." }),
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
    refunds: z
      .array(z.strictObject({ settled_at: seconds, uses: z.int(), cost }))
      .meta({ description: 'Its refunds, oldest first.' }),
  })
  .meta({ id: 'CallWithRefunds' });

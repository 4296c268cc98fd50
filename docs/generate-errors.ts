// Prints docs/reference/errors.md: every error code with its status and meaning, and the fields of errors.
// Run: npx tsx docs/generate-errors.ts > docs/reference/errors.md
import { BUILT_IN_PROVIDERS, errorShapeOf } from '../packages/providers/src/index.ts';
import { ERRORS, errorBody } from '../packages/schema/src/errors.ts';
import { markdownTable } from './markdown-table.ts';

const REQUEST_ID = '0d9c8b7a-6f5e-4d3c-8b2a-190807060504';
const OF_GATEWAY = { code: 'uses_exhausted', details: { limit_of: 'url', limit: 3, used: 3 } } as const;

const FIELDS = `- \`code\`: what happened; stable, for programs
- \`message\`: the same for people; may be more precise than the list below, and may change
- \`type\`, by the status: ${types()}
- \`param\`: the field or header that is wrong, as the caller wrote it, else \`null\`
- \`problems\`: \`{"param", "message"}\` of each wrong field, if a request to the issuer has several; at most 20
- \`request_id\`: also in the header \`x-request-id\` (at the gateway also \`x-presign-request-id\`) and in the log`;

const FURTHER_FIELDS = markdownTable(
  ['Field', 'With', 'Says'],
  [
    [
      '`allowed`',
      '`path_not_allowed`, `method_not_allowed`, `method_not_supported` (gateway), `model_not_allowed`, `field_not_allowed`, `tool_not_allowed`, `argument_not_allowed`',
      'what is allowed; methods are also in the header `Allow`',
    ],
    ['`tool`, `argument`', '`argument_not_allowed`', 'their names'],
    ['`violations`', '`policy_forbids`', 'each wrong field, and what the policy allows'],
    ['`limit`', '`rate_limited`', 'calls a minute'],
    [
      '`limit`, `remaining`, `needed`',
      '`token_rate_limited`; `token_rate_too_low` without `remaining`',
      'tokens a minute, those left now, and the most that the call can use',
    ],
    [
      '`limit_of`',
      '`uses_exhausted`, `cost_limit_*`, `cost_held`, `token_limit_*`, `tokens_held`',
      '`url`: this URL, or its bundle; `virtual_key`: the budget of its virtual key; `budget`: a [shared budget](../guides/budgets.md)',
    ],
    ['`budget`', 'the same, if `limit_of` is `budget`', 'its id'],
    ['`limit`, `used`', '`uses_exhausted`, if `limit_of` is `url`', 'uses'],
    [
      '`limit`, `remaining`',
      '`cost_limit_*`, `cost_held`, if `limit_of` is `url`',
      'microdollars; `remaining` is not charged yet',
    ],
    ['`used`', 'the same, in MCP calls', 'microdollars that are charged'],
    [
      '`needed`',
      '`cost_*`, `token_limit_*`, `tokens_held`',
      'microdollars or tokens that the call would hold',
    ],
    ['`last_call`', 'as `limit_of`', 'how [the last call](calls.md#the-last-call) failed'],
  ],
);

const OTHER_APIS = markdownTable(
  ['API', '`code`', 'Further fields'],
  [
    ['Anthropic', '`error.code`, `error.details.error_code`', 'in `error.details`'],
    [
      'Google',
      '`error.details[0].metadata.code`; `reason` next to it, in capitals',
      'in `metadata`, as strings',
    ],
    ['Cohere', '`code`', 'at the top'],
    ['Mistral', '`code`, `error.code`', 'in `error`'],
  ],
);

process.stdout.write(`# Errors

The body of a refusal is a JSON object with an \`error\`:

${FIELDS}

## Refusals of an LLM call

The gateway writes a refusal as the call's API writes its own errors, so that an SDK can read it. The message begins with the code, which
is also in the header \`x-presign-code\`. OpenAI, and every provider that follows its API:

\`\`\`json
${json(refusal('openai', '/v1/chat/completions'))}
\`\`\`

Other APIs have the same values in other places:

${OTHER_APIS}

The answer to a URL that is expired, revoked or invalid has \`Connection: close\`.

## Codes

Some codes carry further fields:

${FURTHER_FIELDS}

- \`Retry-After\` is set if the same request may succeed later.
- On Anthropic's paths \`token_invalid\` and \`token_expired\` are 403 with type \`permission_error\`: Claude Code repeats a 401.
- A provider's own error passes unchanged, and without \`x-presign-code\`.

All codes:

${codes()}

MCP calls get the same codes in [JSON-RPC errors](mcp.md#refusals). [Spending](spending.md#refusals) says what to do about its codes.
`);

function json(value: unknown): string {
  return JSON.stringify(value, null, 2);
}

/** The body of a refusal of the gateway at a path of a provider. */
function refusal(provider: string, path: string): object {
  const { code, message, type, param } = errorBody(OF_GATEWAY, REQUEST_ID).error;
  const error = { code, message: `${code}: ${message}`, type, param, status: ERRORS[OF_GATEWAY.code][0] };
  const { details } = OF_GATEWAY;
  return errorShapeOf(BUILT_IN_PROVIDERS.get(provider), path)({ ...error, requestId: REQUEST_ID, details });
}

/** The type of each status. */
function types(): string {
  const statuses = new Map<string, Set<number>>();
  for (const [status, type] of Object.values(ERRORS))
    statuses.set(type, (statuses.get(type) ?? new Set()).add(status));
  const all = [...statuses.values()].flatMap((each) => [...each]);
  if (new Set(all).size !== all.length) throw new Error('a status has two types');
  return [...statuses].map(([type, each]) => `\`${type}\` (${[...each].sort().join(', ')})`).join(', ');
}

/** Each code with its status and its meaning. */
function codes(): string {
  return Object.entries(ERRORS)
    .map(([code, [status, , message]]) => `- ${status} \`${code}\`: ${message}`)
    .join('\n');
}

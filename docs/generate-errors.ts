// Prints docs/reference/errors.md: every error code with its status, type, meaning and who sends it.
// Run: npx tsx docs/generate-errors.ts > docs/reference/errors.md
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { BUILT_IN_PROVIDERS, errorShapeOf } from '../packages/providers/src/index.ts';
import { ERRORS, errorBody } from '../packages/schema/src/errors.ts';
import { markdownTable } from './markdown-table.ts';

const REQUEST_ID = '0d9c8b7a-6f5e-4d3c-8b2a-190807060504';
const OF_ISSUER = {
  code: 'invalid_request',
  param: 'max_uses',
  message: 'max_uses: expected a whole number from 1, or -1 for unlimited.',
} as const;
const OF_GATEWAY = { code: 'uses_exhausted', details: { limit_of: 'url', limit: 3, used: 3 } } as const;

const FIELDS = markdownTable(
  ['Field', 'Says'],
  [
    ['`code`', 'what happened; stable, for programs'],
    ['`message`', 'the same for people; may be more precise than the table below, and may change'],
    ['`type`', `the class of the error, by its status: ${types()}`],
    ['`param`', 'the field or header that is wrong, as the caller wrote it, else `null`'],
    [
      '`problems`',
      'if several fields of a request to the issuer are wrong: `{"param", "message"}` of each, at most 20; the first is also above',
    ],
    [
      '`request_id`',
      'also in the header `x-request-id` (at the gateway also `x-presign-request-id`) and in the log',
    ],
  ],
);

const FURTHER_FIELDS = markdownTable(
  ['Field', 'With', 'Says'],
  [
    [
      '`allowed`',
      '`path_not_allowed`, `method_not_allowed`, `method_not_supported` (gateway), `model_not_allowed`, `field_not_allowed`, `tool_not_allowed`, `argument_not_allowed`',
      'what is allowed; methods are also in the header `Allow`',
    ],
    ['`tool`, `argument`', '`argument_not_allowed`', 'the names of the two'],
    ['`violations`', '`policy_forbids`', 'each field that is wrong, with what the policy allows'],
    ['`limit`', '`rate_limited`', 'calls a minute'],
    [
      '`limit`, `remaining`, `needed`',
      '`token_rate_limited`; `token_rate_too_low` without `remaining`',
      'tokens a minute, those that are left now, and the most that the call can use',
    ],
    [
      '`limit_of`',
      '`uses_exhausted`, `cost_limit_*`, `cost_held`, `token_limit_*`, `tokens_held`',
      '`url`: the limit of this URL, or of the bundle that it belongs to. `virtual_key`: the budget of its virtual key. `budget`: a [shared budget](../guides/budgets.md)',
    ],
    ['`budget`', 'the same, if `limit_of` is `budget`', 'the id of the budget'],
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
    ['`last_call`', 'as `limit_of`', 'how [the last call](calls.md#the-last-call) failed, if it did'],
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

The issuer answers each of its refusals with this body:

\`\`\`json
${json(errorBody(OF_ISSUER, REQUEST_ID))}
\`\`\`

${FIELDS}

## Refusals of an LLM call

The gateway refuses a call in the form in which the call's API gives its own errors, so that its SDK can read the refusal. The
message begins with the code, and the header \`x-presign-code\` has the code, too.

OpenAI, and every provider that follows its API:

\`\`\`json
${json(refusal('openai', '/v1/chat/completions'))}
\`\`\`

Other APIs have the same values in other places:

${OTHER_APIS}

The answer to a URL that is expired, revoked or invalid has \`Connection: close\`. The gateway reads the rest of the request for up
to 30 seconds before it closes the connection, so that the holder can read the answer.

## Codes

Some codes carry further fields:

${FURTHER_FIELDS}

- \`Retry-After\` is set if the same request may succeed later.
- On Anthropic's paths \`token_invalid\` and \`token_expired\` are 403 with type \`permission_error\`, because Claude Code repeats a 401.
- A provider's own error passes unchanged, and without \`x-presign-code\`.

${table()}

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

function table(): string {
  const senders = { issuer: sourceOf('../apps/issuer/src'), gateway: sourceOf('../apps/gateway/src') };
  const rows = Object.entries(ERRORS).map(([code, [status, , message]]) => {
    const sentBy = Object.entries(senders).filter(([, source]) => source.includes(`'${code}'`));
    const names = sentBy.map(([name]) => name).join(', ') || '–';
    return [`\`${code}\``, String(status), message, names];
  });
  return markdownTable(['Code', 'Status', 'Meaning', 'Sent by'], rows);
}

/** All source text of a service. */
function sourceOf(folder: string): string {
  const path = fileURLToPath(new URL(folder, import.meta.url));
  const files = readdirSync(path, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.ts'),
  );
  return files.map((name) => readFileSync(join(path, name), 'utf8')).join('\n');
}

// Prints docs/reference/errors.md: every error code with its status, type, meaning and who sends it.
// Run: npx tsx docs/generate-errors.ts > docs/reference/errors.md
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ERRORS, errorBody } from '../packages/schema/src/errors.ts';
import { markdownTable } from './markdown-table.ts';

const EXAMPLE = { code: 'uses_exhausted', details: { limit_of: 'url', limit: 3, used: 3 } } as const;

const FIELDS = markdownTable(
  ['Field', 'Says'],
  [
    ['`code`', 'what happened; stable, for programs'],
    ['`message`', 'the same for people; may be more precise than the table below, and may change'],
    ['`type`', 'the class of the error, as OpenAI and Anthropic name them'],
    ['`param`', 'the field or header that is wrong, as the caller wrote it, else `null`'],
    [
      '`request_id`',
      'also in the header `x-request-id` (at the gateway also `x-presign-request-id`) and in the log',
    ],
  ],
);

const FURTHER_FIELDS = markdownTable(
  ['Field', 'With', 'Says'],
  [
    ['`allowed`', '`path_not_allowed`, `method_not_allowed`, `tool_not_allowed`', 'what is allowed'],
    ['`limit`', '`rate_limited`', 'calls a minute'],
    [
      '`limit_of`',
      '`uses_exhausted`, `cost_limit_reached`, `cost_limit_too_low`, `cost_held`',
      '`url`: the limit of this URL, or of the bundle that it belongs to. `virtual_key`: the budget of its virtual key',
    ],
    ['`limit`, `used`', '`uses_exhausted`, if `limit_of` is `url`', 'uses'],
    [
      '`limit`, `remaining`',
      '`cost_limit_reached`, `cost_limit_too_low`, `cost_held`, if `limit_of` is `url`',
      'microdollars; `remaining` is not charged yet',
    ],
    ['`used`', 'the same three, in MCP calls', 'microdollars that are charged'],
    [
      '`needed`',
      '`cost_limit_reached`, `cost_limit_too_low`, `cost_held`',
      'microdollars that the call would hold',
    ],
  ],
);

process.stdout.write(`# Errors

Issuer and gateway answer each of their refusals with the same body. The OpenAI and Anthropic SDKs can read it:

\`\`\`json
${JSON.stringify(errorBody(EXAMPLE, '0d9c8b7a-6f5e-4d3c-8b2a-190807060504'), null, 2)}
\`\`\`

${FIELDS}

Some codes carry further fields:

${FURTHER_FIELDS}

- \`Retry-After\` is set if the same request may succeed later.
- A provider's own error passes through the gateway unchanged, status and body. Only a refusal of the gateway has an
  \`error.request_id\` that equals the answer's \`x-presign-request-id\`.

${table()}

MCP calls get the same codes in JSON-RPC errors: [Refusals](mcp.md#refusals). [Spending](spending.md#refusals) says what to do about the
codes of spending.
`);

function table(): string {
  const senders = { issuer: sourceOf('../apps/issuer/src'), gateway: sourceOf('../apps/gateway/src') };
  const rows = Object.entries(ERRORS).map(([code, [status, type, message]]) => {
    const sentBy = Object.entries(senders).filter(([, source]) => source.includes(`'${code}'`));
    const names = sentBy.map(([name]) => name).join(', ') || '–';
    return [`\`${code}\``, String(status), `\`${type}\``, message, names];
  });
  return markdownTable(['Code', 'Status', 'Type', 'Meaning', 'Sent by'], rows);
}

/** All source text of a service. */
function sourceOf(folder: string): string {
  const path = fileURLToPath(new URL(folder, import.meta.url));
  const files = readdirSync(path, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.ts'),
  );
  return files.map((name) => readFileSync(join(path, name), 'utf8')).join('\n');
}

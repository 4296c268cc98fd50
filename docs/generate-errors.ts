// Prints docs/reference/errors.md: every error code with its status, type, meaning and who sends it.
// Run: npx tsx docs/generate-errors.ts > docs/reference/errors.md
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ERRORS } from '../packages/schema/src/errors.ts';
import { markdownTable } from './markdown-table.ts';

process.stdout.write(`# Errors

Issuer and gateway answer every refusal of their own with one body, which the OpenAI and Anthropic SDKs can read:

\`\`\`json
{
  "error": {
    "code": "uses_exhausted",
    "message": "All uses of this URL are spent.",
    "type": "permission_error",
    "param": null,
    "request_id": "0d9c8b7a-6f5e-4d3c-8b2a-190807060504",
    "limit": 3,
    "used": 3
  }
}
\`\`\`

- \`code\` is stable; programs switch on it. \`message\` is for people, may be more precise than the one below, and may
  change.
- \`param\` names the field or header at fault as the caller wrote it, else \`null\`.
- \`request_id\` is also in the \`x-request-id\` header (at the gateway in \`x-presign-request-id\` too) and in the log.
- Further fields are facts for programs: \`allowed\` with \`path_not_allowed\` and \`method_not_allowed\`; \`limit\`, a
  minute's calls, with \`rate_limited\`; \`limit_of\` (\`url\` or \`virtual_key\`) with the limits of uses and money. Of the
  URL's own, \`limit\` and \`used\` with \`uses_exhausted\`, and in microdollars \`limit\` and what of it is \`remaining\` (not
  charged yet) with \`cost_limit_reached\`, \`cost_limit_too_low\` and \`cost_held\`; these also have \`needed\`, what the call
  would hold.
- \`Retry-After\` is set where the same request may succeed later.
- A provider's own error passes through the gateway unchanged, status and body. It has no \`error.request_id\` equal
  to the answer's \`x-presign-request-id\`; a refusal of the gateway has.

${table()}

"–" in the last column: the code has its place in the table and no service sends it yet. What to do about the codes of
spending is in [behaviour.md](../behaviour.md#refusals).
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

// Prints docs/reference/configuration.md: every variable, who reads it and what it is when unset.
// Run: npx tsx docs/generate-configuration.ts > docs/reference/configuration.md
import { readFileSync } from 'node:fs';
import { VARIABLES } from '../packages/schema/src/variables.ts';
import { markdownTable } from './markdown-table.ts';

const READERS = {
  '`start`': '../infra/local/src/env.ts',
  issuer: '../apps/issuer/src/env.ts',
  gateway: '../apps/gateway/src/env.ts',
};

process.stdout.write(`# Configuration

Both services are configured by environment variables alone. Each service has one file that reads them
([issuer](../../apps/issuer/src/env.ts), [gateway](../../apps/gateway/src/env.ts),
[\`start\`](../../infra/local/src/env.ts)). A missing or malformed variable stops the start with one line that names
it and shows an example.

The last three columns say what a variable is when it is unset or empty. **required**: the start stops. _optional_:
there is no value, see below. Empty: not read.

${table()}

- \`start\` without \`DATABASE_URL\` or \`REDIS_URL\` runs the embedded engine in its place, with its data in
  \`PRESIGN_DATA_DIR\`. Each can be switched to a server alone.
- \`start\` without \`TOKEN_SIGNING_KEY\`, \`ENCRYPTION_KEYS\` or \`BOOTSTRAP_API_KEY\` makes the missing ones at first
  start and keeps them in \`PRESIGN_DATA_DIR\`, readable by their owner alone. For a deployment in parts,
  \`pnpm --filter @presign/issuer keys\` prints a fresh set, and a password for the Postgres of
  [compose.yaml](../../infra/compose.yaml).
- \`start\` with \`SANDBOX=true\` lets the gateway reach the sandbox's own loopback ports;
  \`ALLOW_PRIVATE_UPSTREAMS\` concerns all others.
- The issuer takes \`ALLOW_PRIVATE_UPSTREAMS\` for [webhooks](../guides/webhooks.md): \`true\` also allows plain \`http\` there.
- \`PROVIDERS_FILE\` is [described with the providers](../../packages/providers/README.md#operators-providers_file). Issuer
  and gateway need the same one. Where a \`base_url\` in it leads to a private or loopback address, the gateway also needs
  \`ALLOW_PRIVATE_UPSTREAMS=true\`; without it such a call is a 502 \`upstream_unreachable\`, and the log says why.
- A store that does not answer stops no service: after ten seconds a line of the log names \`DATABASE_URL\` or
  \`REDIS_URL\` and the address, \`/readyz\` says 503, and the service goes on asking. \`start\` and \`migrate\` stop.
- The issuer takes \`TOKEN_PUBLIC_KEYS\` as keys to publish beside its own, while a rotation is under way; \`start\`
  also accepts tokens signed with them.
- \`pnpm --filter @presign/issuer migrate\` reads \`DATABASE_URL\` alone.

## Rotating keys

Of [tokens](../control-plane.md#rotating-token-keys) and of [what is sealed](../control-plane.md#rotating-encryption-keys), step
by step: in another order calls fail. An \`Idempotency-Key\` that was first used under a removed encryption key is refused as
used for another request.
`);

function table(): string {
  const defaults = Object.values(READERS).map(defaultsOf);
  const head = ['Variable', 'Meaning', 'Example', ...Object.keys(READERS)];
  const rows = Object.entries(VARIABLES).map(([name, { meaning, example }]) => {
    const cells = defaults.map((read) => read.get(name) ?? '');
    if (cells.every((cell) => cell === '')) throw new Error(`no service reads ${name}`);
    return [`\`${name}\``, meaning, `\`${example}\``, ...cells];
  });
  return markdownTable(head, rows);
}

/** The variables one service reads, with what they are when unset, out of its `readVariable` calls. */
function defaultsOf(file: string): Map<string, string> {
  const source = readFileSync(new URL(file, import.meta.url), 'utf8');
  const calls = source.matchAll(/readVariable\(env, '(\w+)'(?:, ([^)]+))?\)/g);
  return new Map(Array.from(calls, ([, name = '', fallback]) => [name, inWords(fallback)]));
}

function inWords(fallback: string | undefined): string {
  if (fallback === undefined) return '**required**';
  if (fallback === 'undefined' || fallback === "''") return '_optional_';
  const text = fallback.replace(/^['`]|['`]$/g, '');
  return `\`${text.replace(/\$\{\w*port\}/i, 'PORT').replace(/\$\{\w+\}/, 'HOST')}\``;
}

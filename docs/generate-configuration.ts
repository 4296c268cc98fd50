// Prints docs/reference/configuration.md: every variable, who reads it and what it is when unset.
// Run: npx tsx docs/generate-configuration.ts > docs/reference/configuration.md
import { readFileSync } from 'node:fs';
import { VARIABLES } from '../packages/service/src/variables.ts';
import { markdownTable } from './markdown-table.ts';

const START = '../infra/local/src/env.ts';
const SERVICES = {
  issuer: '../apps/issuer/src/env.ts',
  gateway: '../apps/gateway/src/env.ts',
};

const { table, ofStart } = variables();

process.stdout.write(`# Configuration

Environment variables configure both services. A service with a missing or malformed variable does not start, and names it. The last two
columns show the value if the variable is unset or empty. An empty cell: the service does not read it.

${table}

## \`start\`

\`start\` reads the variables of both services. ${ofStart}

- Without \`DATABASE_URL\` or \`REDIS_URL\`, \`start\` runs that store embedded, with its data in \`PRESIGN_DATA_DIR\`.
- Without \`TOKEN_SIGNING_KEY\`, \`ENCRYPTION_KEYS\` or \`BOOTSTRAP_API_KEY\`, \`start\` makes the missing ones and keeps them in
  \`PRESIGN_DATA_DIR\`, readable by their owner alone. For separate services, \`npx -y pnpm@12 --filter @presign/issuer keys\` prints a fresh
  set and a Postgres password for [compose.yaml](../../infra/compose.yaml), which \`infra/secrets.sh\` writes to files.
- \`start\` also accepts tokens that keys of \`TOKEN_PUBLIC_KEYS\` signed.

## Notes

- \`ALLOW_PRIVATE_UPSTREAMS=true\` at the issuer allows private addresses and plain \`http\` for
  [webhooks](../guides/webhooks.md).
- Issuer and gateway need the same [\`PROVIDERS_FILE\`](../../packages/providers/README.md#operators-providers_file).
- Requests to https upstreams, webhooks and \`PRICES_URL\` go through \`HTTPS_PROXY\`, where
  [the proxy judges addresses](../../SECURITY.md#not-promised). Plain \`http\` goes without it.
- Certificates of upstreams must be valid for their names. Node's own variable \`NODE_EXTRA_CA_CERTS\` names the PEM file of a certificate
  authority of your own.
- A store that does not answer does not stop a service: [\`/readyz\`](../guides/run-it.md#5-check) says what it cannot do. It stops \`start\` and
  \`migrate\`.
- Each secret may be in a file instead, whose path is in the variable with \`_FILE\` at its end, as in \`TOKEN_SIGNING_KEY_FILE=/run/secrets/signing\`:
  \`AWS_ACCESS_KEY_ID\`, \`AWS_SECRET_ACCESS_KEY\`, \`AWS_SESSION_TOKEN\`, \`BOOTSTRAP_API_KEY\`, \`DATABASE_URL\`, \`ENCRYPTION_KEYS\`,
  \`HTTPS_PROXY\`, \`REDIS_URL\`, \`TOKEN_PUBLIC_KEYS\`, \`TOKEN_SIGNING_KEY\`. A last line break is ignored. Setting both is an error.
- The issuer reads \`AWS_…\` only if \`ARCHIVE_S3\` is set.
- The issuer publishes the keys of \`TOKEN_PUBLIC_KEYS\` together with its own, for [a rotation](../guides/rotate-keys.md).
- \`npx -y pnpm@12 --filter @presign/issuer migrate\` reads \`DATABASE_URL\` alone.
`);

/** The table of all variables, and how `start` differs from it. */
function variables(): { readonly table: string; readonly ofStart: string } {
  const each = [START, ...Object.values(SERVICES)].map(defaultsOf);
  const [, issuer = new Map<string, string>(), gateway = new Map<string, string>()] = each;
  // `start` reads these with functions of the services.
  const ofGateway = [...gateway.keys()].filter((name) => /^MAX_(?:HELD_BODY|BODY|SOCKET)/.test(name));
  const ofIssuer = [...issuer.keys()].filter((name) => /_KEPT_DAYS$|^ARCHIVE_|^AWS_/.test(name));
  const shared = [
    ...ofGateway.map((name) => [name, gateway.get(name) ?? ''] as const),
    ...ofIssuer.map((name) => [name, issuer.get(name) ?? ''] as const),
  ];
  const byAll = ['read-variable', 'database'].flatMap((file) => [
    ...defaultsOf(`../packages/service/src/${file}.ts`),
  ]);
  const defaults = each.map((read, i) => new Map([...byAll, ...(i === 0 ? shared : []), ...read]));
  const rows = Object.entries(VARIABLES).map(([name, { meaning, example }]) => {
    const values = defaults.map((read) => read.get(name) ?? '');
    if (values.every((value) => value === '')) throw new Error(`no service reads ${name}`);
    return { name, meaning, shown: `\`${example}\``, values };
  });
  const cells = rows.map(({ name, meaning, shown, values: [, ...ofServices] }) => {
    const isDefault = ofServices.includes(shown);
    return [`\`${name}\``, isDefault ? meaning : `${meaning}: ${shown}`, ...ofServices];
  });
  const own = rows.flatMap(({ name, values: [value = '', ...ofServices] }) =>
    value === '' || ofServices.includes(value) ? [] : [`\`${name}\` ${value}`],
  );
  const unread = rows.flatMap(({ name, values: [value] }) => (value === '' ? [`\`${name}\``] : []));
  return {
    table: markdownTable(['Variable', 'Meaning, with an example', ...Object.keys(SERVICES)], cells),
    ofStart: `Its own values: ${own.join(', ')}. It does not read ${unread.join(', ')}.`,
  };
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
  const isNumber = /^[\d_]+$/.test(fallback);
  const text = isNumber ? fallback.replaceAll('_', '') : fallback.replace(/^['`]|['`]$/g, '');
  return `\`${text.replace(/\$\{\w*port\}/i, 'PORT').replace(/\$\{\w+\}/, 'HOST')}\``;
}

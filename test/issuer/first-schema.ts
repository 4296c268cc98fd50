import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { apiKeyHint, hashApiKey, mac, readEncryptionKeys, seal } from '@presign/crypto';
import type { startEmbeddedPostgres } from '@presign/local';
import { MIGRATIONS } from '@presign/schema/migrations';
import { migrate } from 'drizzle-orm/postgres-js/migrator';

type Embedded = Awaited<ReturnType<typeof startEmbeddedPostgres>>;

const ACCOUNT = '00000000-0000-4000-8000-000000000001';
const id = (n: number) => `10000000-0000-4000-8000-${String(n).padStart(12, '0')}`;

/** Ids of the rows that `firstSchemaRows` makes. */
export const OLD = {
  session: id(1),
  grant: id(2),
  virtualKey: `vk_${id(3)}`,
  bundle: id(4),
  webhook: id(5),
  delivery: id(6),
  hold: id(7),
  apiKey: id(8),
  budget: id(9),
} as const;

export const OLD_BODY = {
  provider: 'openai',
  path: '/v1/chat/completions',
  client_api_key: 'sk-of-the-old-grant',
  max_uses: 3,
};
export const OLD_BUNDLE_BODY = { servers: [{ name: 'docs', url: 'https://mcp.example.com/mcp' }] };
export const OLD_IDEMPOTENCY_KEY = 'of-the-first-schema';

/** Makes a folder with the first migration alone. */
export async function firstSchemaFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'presign-first-schema-'));
  await cp(MIGRATIONS, folder, { recursive: true });
  const file = join(folder, 'meta/_journal.json');
  const journal = JSON.parse(await readFile(file, 'utf8')) as { entries: readonly object[] };
  await writeFile(file, JSON.stringify({ ...journal, entries: journal.entries.slice(0, 1) }));
  return folder;
}

/** Brings an empty Postgres to the first schema, by the migrator that the services use. */
export async function migrateToFirstSchema({ db }: Embedded): Promise<void> {
  const folder = await firstSchemaFolder();
  try {
    await migrate(db, { migrationsFolder: folder });
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** A row by the names of its columns. */
export type Row = Readonly<Record<string, unknown>>;

/** Writes rows into tables of the first schema, in an order that its foreign keys allow. */
export async function insertRows(
  db: { readonly query: (text: string, values: unknown[]) => Promise<unknown> },
  rows: Readonly<Record<string, readonly Row[]>>,
): Promise<void> {
  for (const [table, all] of Object.entries(rows)) {
    for (const row of all) {
      const names = Object.keys(row).map((name) => `"${name}"`);
      const values = Object.keys(row).map((_, i) => `$${i + 1}`);
      await db.query(`insert into "${table}" (${names}) values (${values})`, Object.values(row));
    }
  }
}

/** Rows of a live account in each table of the first schema: a used URL, a virtual key, a bundle, a budget, an endpoint. */
export function firstSchemaRows(apiKey: string, encryption: string): Record<string, readonly Row[]> {
  const keys = readEncryptionKeys(encryption);
  const now = new Date(Math.floor(Date.now() / 1000) * 1000);
  const expires = new Date(now.getTime() + 3_600_000);
  const credential = (n: number, secret: string) => ({
    id: id(n),
    account_id: ACCOUNT,
    sealed: seal(keys, secret, `credential ${ACCOUNT} ${id(n)}`),
  });
  const document = { mcpServers: { docs: { url: 'https://gateway.example.com/mcp/mcp', transport: 'sse' } } };
  const grant = { account_id: ACCOUNT, session_id: OLD.session, issued_at: now, expires_at: expires };
  const claim = { account_id: ACCOUNT, key: OLD_IDEMPOTENCY_KEY, created_at: now };
  return {
    accounts: [{ id: ACCOUNT, name: 'default' }],
    api_keys: [
      {
        ...{ id: OLD.apiKey, account_id: ACCOUNT, name: 'bootstrap', scopes: ['admin'] },
        ...{ hash: hashApiKey(apiKey), hint: apiKeyHint(apiKey) },
      },
    ],
    credentials: [
      credential(20, OLD_BODY.client_api_key),
      credential(21, 'sk-of-the-old-virtual-key'),
      credential(22, JSON.stringify(document)),
      credential(23, JSON.stringify({ type: 'bearer', token: 'of-the-old-server' })),
    ],
    budgets: [
      {
        id: OLD.budget,
        partition: 1,
        max_uses: 3,
        cost_limit_microusd: null,
        used: 1,
        settled_microusd: 40,
        announced_uses_percent: 33,
      },
      { id: id(31), partition: 2, max_uses: 10 },
      { id: id(32), partition: 3, cost_limit_microusd: 5_000_000, calls_per_minute: 60 },
    ],
    virtual_keys: [
      {
        ...{ id: OLD.virtualKey, account_id: ACCOUNT, name: 'old', provider: 'openai' },
        ...{ credential_id: id(21), config: '{"max_tokens":7}', budget_id: id(31) },
      },
    ],
    sessions: [{ id: OLD.session, account_id: ACCOUNT }],
    grants: [
      {
        ...{
          ...grant,
          id: OLD.grant,
          budget_id: OLD.budget,
          credential_id: id(20),
          kind: 'llm',
          provider: 'openai',
        },
        ...{
          method: 'POST',
          paths: '["/v1/chat/completions"]',
          external_user: 'user-1',
          metadata: '{"a":1}',
        },
      },
      {
        ...grant,
        id: OLD.bundle,
        budget_id: id(32),
        credential_id: id(22),
        kind: 'mcp_bundle',
        provider: 'mcp',
      },
      {
        ...{ ...grant, id: id(41), budget_id: id(32), credential_id: id(23), kind: 'mcp', provider: 'mcp' },
        ...{
          bundle_id: OLD.bundle,
          server: JSON.stringify({ ...OLD_BUNDLE_BODY.servers[0], transport: 'sse' }),
        },
      },
    ],
    oauth_tokens: [{ credential_id: id(23), origin: 'of-the-old-refresh-token' }],
    idempotency_keys: [
      {
        ...claim,
        route: 'POST /v1/presign',
        grant_id: OLD.grant,
        body_mac: mac(keys, 'idempotency', JSON.stringify(OLD_BODY)),
      },
      {
        ...claim,
        route: 'POST /v2/mcp-presign',
        grant_id: OLD.bundle,
        body_mac: mac(keys, 'idempotency', JSON.stringify(OLD_BUNDLE_BODY)),
      },
    ],
    partitions: [{ id: 1, epoch: 4, last_id: '5-0' }],
    ledger: [
      {
        ...{ hold_id: OLD.hold, account_id: ACCOUNT, session_id: OLD.session, grant_id: OLD.grant },
        ...{ provider: 'openai', model: 'model-1', external_user: 'user-1', uses: 1, cost_microusd: 40 },
        ...{
          input_tokens: 10,
          output_tokens: 4,
          status: 200,
          outcome: 'settled',
          started_at: now,
          settled_at: now,
        },
      },
    ],
    pending_usage: [{ hold_id: OLD.hold, account_id: ACCOUNT }],
    webhooks: [
      {
        ...{
          id: OLD.webhook,
          account_id: ACCOUNT,
          url: 'https://hooks.example.com/',
          events: ['grant.revoked'],
        },
        sealed: seal(keys, 'whsec_b2Ytb2xkLXdlYmhvb2s=', `webhook ${ACCOUNT} ${OLD.webhook}`),
      },
    ],
    webhook_events: [{ id: id(50), account_id: ACCOUNT, type: 'grant.revoked', payload: '{}' }],
    webhook_deliveries: [
      {
        ...{ id: OLD.delivery, webhook_id: OLD.webhook, event_id: id(50), status: 'delivered' },
        ...{ attempts: 1, claims: 1, last_status: 204, delivered_at: now },
      },
    ],
    console_sessions: [{ hash: 'of-a-cookie', api_key_id: OLD.apiKey, expires_at: expires }],
    audit: [
      {
        ...{ account_id: ACCOUNT, actor: 'cli', action: 'api_key.created' },
        ...{ target_kind: 'api_key', target_id: OLD.apiKey },
      },
    ],
    budget_calendars: [{ id: 'month UTC', kind: 'month', time_zone: 'UTC' }],
    budget_windows: [{ calendar_id: 'month UTC', starts_at: now }],
    shared_budgets: [
      {
        ...{ id: id(60), account_id: ACCOUNT, partition: 4, scope: 'external_user', scope_value: 'user-2' },
        ...{ calendar_id: 'month UTC', window: 'month', cost_limit_microusd: 5_000, created_at: now },
      },
    ],
    pending_changes: [{ change_id: id(70), due_at: expires, account_id: ACCOUNT }],
    usage_days: [
      {
        ...{ id: id(80), account_id: ACCOUNT, day: '2026-01-31', provider: 'openai', calls: '2', uses: '2' },
        ...{ cost_microusd: '80', calls_of_unknown_cost: '0', input_tokens: '20', output_tokens: '8' },
      },
    ],
    usage_marks: [{ account_id: ACCOUNT, summed_until: new Date('2026-02-01T00:00:00Z') }],
    price_lists: [{ source: 'of-a-file', id: '1', list: '{}', dated_at: now }],
    knowledge_files: [{ source: 'of-a-file', id: '1', list: '{}', dated_at: now }],
    archive_parts: [
      { name: 'ledger/ledger-1.csv.gz', job: 'of-an-old-job', body: 'H4sIAAAAAAAAAwMAAAAAAAAAAAA=' },
    ],
  };
}

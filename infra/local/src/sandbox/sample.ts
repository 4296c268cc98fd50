import { writeFileSync } from 'node:fs';
import { createPresign, type Presign } from '@presign/client';
import { addLateCalls, holdMarks } from '@presign/issuer';
import { ledger } from '@presign/schema/ledger-tables';
import { grants, sessions } from '@presign/schema/tables';
import type { Database, Transaction } from '@presign/service/database';
import { and, eq, inArray, sql } from 'drizzle-orm';

type Sample = {
  readonly issuerUrl: string;
  /** A key that may create accounts. */
  readonly apiKey: string;
  readonly sandboxMcpUrl: string;
  /** Where the admin API key of the sample account is written. */
  readonly keyFile: string;
  readonly db: Database;
  /** Writes all settled calls to the ledger. */
  readonly drain: () => Promise<unknown>;
  /** Hears the id of the account before its first call. */
  readonly began: (accountId: string) => void;
};

/**
 * Fills an account of its own, named `sample`, for the console to show: real calls of the sandbox through the gateway, whose times are
 * then moved so that they spread over the last days. Its budgets have no windows, so the move changes no sum of theirs.
 */
export async function writeSample(sample: Sample) {
  const { issuerUrl, apiKey, sandboxMcpUrl, keyFile, db, drain } = sample;
  const client = (key: string) => createPresign({ url: issuerUrl, apiKey: key });
  const { id, api_key: first } = await client(apiKey).createAccount({ name: 'sample' });
  sample.began(id);
  const admin = client(first.key);
  const { key } = await admin.createApiKey({
    name: 'Web backend',
    scopes: ['presign'],
    policy: { providers: ['sandbox', 'mcp'] },
  });
  const holders = await issueUrls(admin, client(key));
  const days: string[][] = [];
  for (let day = 0; day < DAYS; day++) days.push(await callAll(holders, day));
  await callAgent(client(key), sandboxMcpUrl);
  await drain();
  await db.transaction((tx) => moveBack(tx, id, days));
  // Written last: with it, the account is complete.
  writeFileSync(keyFile, `${first.key}\n`, { mode: 0o600 });
}

const DAYS = 14;

/** A holder of a URL, and the length of their questions. */
type Holder = { readonly url: string; readonly model: string; readonly words: number };

/** The budgets are such that Ada comes near hers, Grace spends hers, and Alan uses up his URL. */
async function issueUrls(admin: Presign, backend: Presign): Promise<Holder[]> {
  const budget = (name: string, external_user: string, cost_limit: number) =>
    admin.createBudget({ name, scope: { external_user }, cost_limit, window: 'lifetime' });
  await admin.createBudget({
    name: 'All customers',
    scope: { account: true },
    cost_limit: 40_000,
    window: 'lifetime',
  });
  await budget('Ada, plan Pro', 'ada', 17_000);
  await budget('Grace, trial', 'grace', 6_000);
  const { id: virtual_key } = await admin.createVirtualKey({
    name: 'Production',
    provider: 'sandbox',
    key: 'sk-sandbox',
  });
  const issue = async (external_user: string, model: string, words: number, max_uses = -1) => {
    const chat = { provider: 'sandbox', path: '/v1/chat/completions', virtual_key, max_uses };
    const { url } = await backend.presign({ ...chat, external_user, expires_in: 30 * 86_400 });
    return { url, model, words };
  };
  return [
    await issue('ada', 'sandbox-1', 700),
    await issue('grace', 'sandbox-1', 300),
    await issue('alan', 'sandbox-mini', 150, 20),
    await issue('barbara', 'sandbox-mini', 60),
  ];
}

/** How often a holder calls on a day: 0 to 3 times, the same at every start. */
const callsOf = (day: number, holder: number): number => (day * 5 + holder * 3 + ((day * day) >> 2)) % 4;

/** Makes the calls of a day, refused ones included. Returns the ids of all. */
async function callAll(holders: readonly Holder[], day: number): Promise<string[]> {
  const ids: string[] = [];
  for (const [at, { url, model, words }] of holders.entries())
    for (let call = callsOf(day, at); call > 0; call--) {
      const messages = [{ role: 'user', content: 'Why is the sky blue? '.repeat(words) }];
      const answer = await post(url, { model, max_tokens: 200, messages });
      ids.push(answer.headers.get('x-presign-request-id') ?? '');
    }
  return ids;
}

/** A bundle of the sandbox MCP server, and some calls of its tools. */
async function callAgent(backend: Presign, url: string): Promise<void> {
  const { servers } = await backend.mcpPresign({
    servers: [{ name: 'sandbox', url, transport: 'http' }],
    external_user: 'alan',
    expires_in: 86_400,
    max_uses: 20,
  });
  for (let id = 1; id <= 3; id++) {
    const params = { name: 'add', arguments: { a: id, b: 2 } };
    await post(servers['sandbox']?.url ?? '', { jsonrpc: '2.0', id, method: 'tools/call', params });
  }
}

async function post(url: string, body: object): Promise<Response> {
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
  await answer.arrayBuffer();
  return answer;
}

/** Moves the calls of each day, and the issuing of their URLs, to where they would be if today was the last one. */
async function moveBack(
  tx: Transaction,
  accountId: string,
  days: readonly (readonly string[])[],
): Promise<void> {
  const before = (count: number) => sql`${count} * interval '1 day'`;
  // Sums by day must not move on between the two steps.
  await holdMarks(tx);
  for (const [day, ids] of days.entries()) {
    const back = before(days.length - 1 - day);
    await tx
      .update(ledger)
      .set({ startedAt: sql`${ledger.startedAt} - ${back}`, settledAt: sql`${ledger.settledAt} - ${back}` })
      .where(and(eq(ledger.accountId, accountId), inArray(ledger.requestId, ids.filter(Boolean))));
  }
  const back = before(days.length - 1);
  const moved = await tx
    .update(grants)
    .set({ issuedAt: sql`${grants.issuedAt} - ${back}` })
    .where(and(eq(grants.accountId, accountId), eq(grants.kind, 'llm')))
    .returning({ session: grants.sessionId });
  await tx
    .update(sessions)
    .set({ createdAt: sql`${sessions.createdAt} - ${back}` })
    .where(
      inArray(
        sessions.id,
        moved.map(({ session }) => session),
      ),
    );
  const rows = await tx.select({ id: ledger.holdId }).from(ledger).where(eq(ledger.accountId, accountId));
  await addLateCalls(
    tx,
    rows.map(({ id }) => id),
  );
}

import { writeFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { createPresign, type Presign } from '@presign/client';
import { refusedCalls } from '@presign/schema/ledger-tables';
import type { Database } from '@presign/service/database';
import { eq } from 'drizzle-orm';
import { OVERLOADED } from './reply.ts';
import { type Moved, moveCalls } from './sample-move.ts';
import { mixed, PEOPLE, type Person, personOf, spread } from './sample-people.ts';

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

const DAY_MS = 86_400_000;
/** Calls of the weeks before this month, and of this month. */
const [EARLIER, THIS_MONTH] = [200, 340];
const EARLIER_DAYS = 45;

/**
 * Fills an account of its own, named `sample`, for the console to show: real calls of the sandbox through the gateway, whose times are
 * then moved so that they spread over the last weeks. The calls of this month alone draw on its monthly budgets, so the move changes no
 * sum of theirs.
 */
export async function writeSample(sample: Sample): Promise<void> {
  const { issuerUrl, apiKey, keyFile, db, drain } = sample;
  const client = (key: string) => createPresign({ url: issuerUrl, apiKey: key });
  const { id, api_key: first } = await client(apiKey).createAccount({ name: 'sample' });
  sample.began(id);
  const admin = client(first.key);
  const { key } = await admin.createApiKey({
    name: 'Web backend',
    scopes: ['presign'],
    policy: { providers: ['sandbox', 'mcp'] },
  });
  const { id: virtualKey } = await admin.createVirtualKey({
    name: 'Production',
    provider: 'sandbox',
    key: 'sk-sandbox',
  });
  const issuing = { backend: client(key), virtualKey, mcpUrl: sample.sandboxMcpUrl };
  const now = Date.now();
  const month = Date.UTC(new Date(now).getUTCFullYear(), new Date(now).getUTCMonth(), 1);
  const earlier = await callAll(
    await issueUrls(issuing, 900),
    spread(EARLIER, month - EARLIER_DAYS * DAY_MS, month),
  );
  const budgets = await createBudgets(admin);
  const later = await callAll(await issueUrls(issuing, 30 * 86_400), spread(THIS_MONTH, month, now));
  await drain();
  await fitBudgets(admin, budgets);
  const refused = await makeRefusals(issuing);
  await drain();
  await refusalsKept(db, id, refused.length);
  // The newest refusals are of the last day.
  const times = refused.map((requestId, at) => ({ requestId, atMs: now - 1_000 * (240 + at * 2_900) }));
  await moveCalls(db, id, [...earlier, ...later], times);
  // Written last: with it, the account is complete.
  writeFileSync(keyFile, `${first.key}\n`, { mode: 0o600 });
}

type Issuing = { readonly backend: Presign; readonly virtualKey: string; readonly mcpUrl: string };

/** The URL of an MCP server, and the session that was opened with it. */
type Tools = { readonly url: string; readonly session: string };

/** The URLs of a person: for the model, for a provider key that has ended, and of an MCP server. */
type Urls = { readonly chat: string; readonly stale: string; readonly tools: Tools };
type Holders = ReadonlyMap<string, Urls>;

const CHAT = { provider: 'sandbox', path: '/v1/chat/completions' };

async function issueUrls({ backend, virtualKey, mcpUrl }: Issuing, expires_in: number): Promise<Holders> {
  const holders = new Map<string, Urls>();
  for (const { user, team, plan } of PEOPLE) {
    const owner = { external_user: user, metadata: { team, plan }, expires_in };
    const { url: chat, session_id } = await backend.presign({ ...CHAT, ...owner, virtual_key: virtualKey });
    const own = { ...owner, session_id };
    const { url: stale } = await backend.presign({ ...CHAT, ...own, client_api_key: 'sk-ended' });
    const tools = { default: 2_000, tools: { add: 15_000 } };
    const server = { name: 'sandbox', url: mcpUrl, transport: 'http', pricing: tools } as const;
    const { servers } = await backend.mcpPresign({
      ...{ ...own, servers: [server] },
      expires_in: Math.min(expires_in, 86_400),
    });
    holders.set(user, { chat, stale, tools: await openSession(servers['sandbox']?.url ?? '') });
  }
  return holders;
}

/** Calls under way at once. */
const AT_ONCE = 6;

/** Makes a call for each of these times. */
async function callAll(holders: Holders, times: readonly number[]): Promise<Moved[]> {
  const calls: Moved[] = [];
  let next = 0;
  const work = async () => {
    for (let at = next++; at < times.length; at = next++) {
      const person = personOf(at);
      const urls = holders.get(person.user);
      if (urls) calls.push({ requestId: await callOnce(urls, person, at), atMs: times[at] ?? 0 });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return calls;
}

/** In a hundred calls, 14 use tools, 3 meet an overloaded model, and 1 has a key that has ended. */
function callOnce({ chat, stale, tools }: Urls, { model, words }: Person, at: number): Promise<string> {
  const kind = mixed(at + 5_000) % 100;
  if (kind < 14) return callTool(tools, kind < 5 ? 'add' : 'echo', at);
  if (kind < 17) return ask(chat, OVERLOADED, words);
  return ask(kind < 18 ? stale : chat, model, Math.ceil(words * (0.4 + (mixed(at) % 120) / 100)));
}

const ask = (url: string, model: string, words: number, more: object = {}): Promise<string> => {
  const messages = [{ role: 'user', content: 'Why is the sky blue? '.repeat(words) }];
  return post(url, { model, max_tokens: 200, messages, ...more });
};

function callTool({ url, session }: Tools, name: 'add' | 'echo', id: number): Promise<string> {
  const args = name === 'add' ? { a: id, b: 2 } : { message: 'Hello' };
  return post(url, { jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: args } }, session);
}

/** As a client of MCP begins. */
async function openSession(url: string): Promise<Tools> {
  const params = {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'sample', version: '1' },
  };
  const answer = await send(url, { jsonrpc: '2.0', id: 0, method: 'initialize', params });
  return { url, session: answer.headers.get('mcp-session-id') ?? '' };
}

/** Returns the request id of the answer. */
async function post(url: string, body: object, session?: string): Promise<string> {
  return (await send(url, body, session)).headers.get('x-presign-request-id') ?? '';
}

async function send(url: string, body: object, session?: string): Promise<Response> {
  const headers = {
    ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    ...(session !== undefined && { 'mcp-session-id': session }),
  };
  const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
  await answer.arrayBuffer();
  return answer;
}

type Budgets = readonly { readonly id: string; readonly full: number }[];

/** Without a limit at first: how much is spent says what it is to be. */
async function createBudgets(admin: Presign): Promise<Budgets> {
  const create = async (name: string, scope: { account: true } | { external_user: string }, full: number) => {
    const { id } = await admin.createBudget({ name, scope, cost_limit: 10_000_000_000, window: 'month' });
    return { id, full };
  };
  const budgets = [await create('All customers', { account: true }, 0.75)];
  for (const { user, plan, full } of PEOPLE)
    budgets.push(
      await create(
        `${user.charAt(0).toUpperCase()}${user.slice(1)}, plan ${plan}`,
        { external_user: user },
        full,
      ),
    );
  return budgets;
}

/** Sets limits in whole dollars, except that of a budget that is to be spent. */
async function fitBudgets(admin: Presign, budgets: Budgets): Promise<void> {
  for (const { id, full } of budgets) {
    const { current } = await admin.getBudget({ id });
    const spent = current?.live?.spent ?? 0;
    const dollars = Math.max(1, Math.floor(spent / full / 1_000_000)) * 1_000_000;
    await admin.changeBudget({ id, cost_limit: full === 1 ? spent + 20_000 : Math.max(dollars, spent) });
  }
}

/** Calls that a limit or a condition refuses. Returns their request ids. */
async function makeRefusals({ backend, virtualKey }: Issuing): Promise<string[]> {
  const issue = async (user: string, limits: object) => {
    const { team, plan } = PEOPLE.find((each) => each.user === user) ?? {};
    const metadata = { team: team ?? '', plan: plan ?? '' };
    const body = { ...CHAT, virtual_key: virtualKey, external_user: user, metadata, expires_in: 30 * 86_400 };
    return (await backend.presign({ ...body, ...limits })).url;
  };
  const ids: string[] = [];
  const repeat = async (times: number, url: string, model: string, more: object = {}) => {
    for (; times > 0; times--) ids.push(await ask(url, model, 20, more));
  };
  await repeat(7, await issue('grace', {}), 'sandbox-pro');
  const once = await issue('alan', { max_uses: 1 });
  await ask(once, 'sandbox-mini', 20);
  await repeat(6, once, 'sandbox-mini');
  const slow = await issue('linus', { calls_per_minute: 1 });
  await ask(slow, 'sandbox-mini', 20);
  await repeat(5, slow, 'sandbox-mini');
  await repeat(4, await issue('katherine', { models: ['sandbox-mini'] }), 'sandbox-pro');
  await repeat(3, await issue('barbara', { cost_limit: 1_000_000 }), 'sandbox-1', { sandbox_option: true });
  return ids;
}

/** Waits, a minute at most, until the issuer has written these refused calls, so that they can be moved. */
async function refusalsKept(db: Database, accountId: string, calls: number): Promise<void> {
  for (let looks = 0; looks < 120; looks++) {
    const rows = await db.$count(refusedCalls, eq(refusedCalls.accountId, accountId));
    if (rows >= calls) return;
    await setTimeout(500);
  }
}

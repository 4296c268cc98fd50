import { grants } from '@presign/schema/tables';
import { eq, sql } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { addVirtualKey, ownAccount } from './accounts.ts';
import { issue, least, refused, type Sent, send, tokenOf } from './ask.ts';

/** In every secret that this file sends: must be found nowhere afterwards. */
const MARK = 'Zm4rkedZ';
const secretKey = `sk-${MARK}-client`;
const ask = { ...least, client_api_key: secretKey };

let stack: Stack;
/** All that the issuer answered. */
const answers: string[] = [];

const attempt = async (parts: Parameters<typeof send>[1]): Promise<Sent> => {
  const sent = await send(stack, parts);
  answers.push(sent.text, JSON.stringify([...sent.headers]));
  return sent;
};

beforeAll(async () => {
  stack = await startStack({ providers: {} });
});
afterAll(() => stack.close());

test('a token that was sent here by mistake is not logged', async () => {
  const { url } = await issue(stack, ask);
  const token = tokenOf(url);
  refused(await attempt({ path: `/llm/t/${token}/v1/chat/completions`, body: ask }), 'not_found');
  refused(await attempt({ path: `/v1/${stack.apiKey}`, body: ask }), 'not_found');
  const parts = [token.slice(20, 60), token.slice(-40), stack.apiKey];
  expect(stack.logs.some((line) => line.includes('/llm/t/v4.public.…'))).toBe(true);
  expect(stack.logs.filter((line) => parts.some((part) => line.includes(part)))).toEqual([]);
});

test('no refusal quotes a secret, whatever the request contains', async () => {
  const wrong = [
    { client_api_key: `${secretKey} with space` },
    { client_api_key: [secretKey] },
    { client_api_key: { key: secretKey } },
    { client_api_key: `${secretKey}\n` },
    { client_api_key: secretKey.repeat(1000) },
    { virtual_key: `${secretKey} ` },
    { provider: secretKey },
    { method: secretKey },
    { path: `/v1/x?key=${secretKey}` },
    { session_id: secretKey },
    { metadata: secretKey },
    { external_user: { secretKey } },
  ];
  for (const fields of wrong) {
    const sent = await attempt({ body: { ...ask, ...fields } });
    expect(sent.status).toBe(400);
  }
  await attempt({ body: `{"client_api_key": "${secretKey}",` });
  await attempt({ body: `{"client_api_key": "${secretKey}", "client_api_key": "${secretKey}"}` });
  expect(answers.filter((text) => text.includes(MARK) || text.includes(stack.apiKey))).toEqual([]);
});

test('no log line contains a secret', async () => {
  await addVirtualKey(stack, await ownAccount(stack), { secret: secretKey });
  expect(stack.logs.length).toBeGreaterThan(10);
  expect(stack.logs.filter((line) => line.includes(MARK) || line.includes(stack.apiKey))).toEqual([]);
});

test('no table of Postgres contains a secret in plain text', async () => {
  const marked = `user-${MARK}`;
  await issue(stack, { ...ask, external_user: marked }, { 'idempotency-key': 'i1' });
  const found = await tablesWith(MARK);
  // The search finds a text that is not secret, so it works.
  expect(found).toEqual(['grants']);
  await stack.db.update(grants).set({ externalUser: null }).where(eq(grants.externalUser, marked));
  expect(await tablesWith(MARK)).toEqual([]);
  expect(await tablesWith(stack.apiKey)).toEqual([]);
});

test('no key of Redis contains a secret in plain text, after a call that used one', async () => {
  const { url } = await issue(stack, ask);
  await fetch(url, { method: 'POST', body: '{}' });
  const all = await dumpRedis();
  expect(all).toContain('credential:');
  expect(all).not.toContain(MARK);
  expect(all).not.toContain(stack.apiKey);
  expect(all).not.toContain(tokenOf(url).slice(10, 60));
});

/** Names of the tables with a row that holds this text anywhere. */
async function tablesWith(text: string): Promise<string[]> {
  const tables = await stack.db
    .select({ name: sql<string>`tablename` })
    .from(sql`pg_tables`)
    .where(sql`schemaname = 'public'`)
    .orderBy(sql`1`);
  const found: string[] = [];
  for (const { name } of tables) {
    const holds = sql`strpos(t::text, ${text}) > 0`;
    if ((await stack.db.$count(sql`${sql.identifier(name)} t`, holds)) > 0) found.push(name);
  }
  expect(tables.length).toBeGreaterThan(8);
  return found;
}

async function dumpRedis(): Promise<string> {
  const parts: string[] = [];
  for (const key of await stack.redis.keys('*')) {
    const type = await stack.redis.type(key);
    if (type === 'hash') parts.push(key, JSON.stringify(await stack.redis.hgetall(key)));
    if (type === 'stream') parts.push(key, JSON.stringify(await stack.redis.xrange(key, '-', '+')));
    if (type === 'zset') parts.push(key, JSON.stringify(await stack.redis.zrange(key, '0', '-1')));
    if (type === 'string') parts.push(key, (await stack.redis.get(key)) ?? '');
  }
  return parts.join('\n');
}

import { generateEncryptionKey, readEncryptionKeys } from '@presign/crypto';
import type { McpPresignAnswer } from '@presign/schema';
import { grants, oauthTokens } from '@presign/schema/tables';
import { eq, sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { addAccount } from './accounts.ts';
import { refused } from './ask.ts';
import { issueMcp, sendMcp, server, serverToken, unsealed, writtenBundle } from './ask-mcp.ts';
import { startOwnIssuer } from './own-issuer.ts';

/** In every secret that this file sends: must be found nowhere afterwards. */
const MARK = 'Qm4rkedQ';
const secret = (name: string) => `${name}-${MARK}`;

let stack: Stack;

beforeAll(async () => {
  stack = await startStack({ providers: {} });
});
afterAll(() => stack.close());

type Issuer = Parameters<typeof issueMcp>[0];
const refreshing = (fields: object = {}) => ({
  token_url: 'https://id.example.com/token',
  client_id: 'client',
  refresh_token: secret('refresh'),
  ...fields,
});
const issueOauth = (config: object, on: Issuer = stack) =>
  issueMcp(on, { servers: [{ ...server, auth_type: 'oauth', auth_config: config }] });
const credentialOf = async (answer: McpPresignAnswer, name = 'docs') =>
  (await writtenBundle(stack, answer)).byName(name).credentials;
const idOf = async (answer: McpPresignAnswer) => (await credentialOf(answer)).id;

describe('a refresh token', () => {
  test('is one credential with one chain of tokens, however often a backend sends it', async () => {
    const first = await idOf(await issueOauth(refreshing()));
    expect(await idOf(await issueOauth(refreshing()))).toBe(first);
    const rows = await stack.db.select().from(oauthTokens).where(eq(oauthTokens.credentialId, first));
    expect(rows).toEqual([expect.objectContaining({ sealed: null, version: 0, leasedUntil: null })]);
    expect(rows[0]?.origin).toMatch(/^[\w-]+\.[\w-]{43}$/);
  });

  test('that its chain has already replaced finds that chain, unchanged', async () => {
    const config = refreshing({ refresh_token: secret('old') });
    const id = await idOf(await issueOauth(config));
    const moved = { sealed: 'sealed newer tokens', version: 7 };
    await stack.db.update(oauthTokens).set(moved).where(eq(oauthTokens.credentialId, id));
    expect(await idOf(await issueOauth(config))).toBe(id);
    const [row] = await stack.db.select().from(oauthTokens).where(eq(oauthTokens.credentialId, id));
    expect(row).toMatchObject(moved);
  });

  test('of two servers of one bundle is one credential', async () => {
    const auth = { auth_type: 'oauth', auth_config: refreshing({ refresh_token: secret('two') }) };
    const servers = [server, { ...server, name: 'second' }].map((each) => ({ ...each, ...auth }));
    const answer = await issueMcp(stack, { servers });
    expect((await credentialOf(answer, 'second')).id).toBe((await credentialOf(answer)).id);
  });

  test('in 20 parallel requests is one credential', async () => {
    const config = refreshing({ refresh_token: secret('parallel') });
    const answers = await Promise.all(Array.from({ length: 20 }, () => issueOauth(config)));
    expect(new Set(await Promise.all(answers.map(idOf))).size).toBe(1);
  });

  test('of another user, client, token server or account is another credential', async () => {
    const other = await addAccount(stack);
    const stranger = { issuerUrl: stack.issuerUrl, apiKey: other.apiKey };
    const answers = [
      await issueOauth(refreshing()),
      await issueOauth(refreshing({ refresh_token: secret('another') })),
      await issueOauth(refreshing({ client_id: 'another' })),
      await issueOauth(refreshing({ token_url: 'https://id.example.com/another' })),
      await issueOauth(refreshing(), stranger),
    ];
    expect(new Set(await Promise.all(answers.map(idOf))).size).toBe(5);
    expect((await credentialOf(answers[4] as McpPresignAnswer)).accountId).toBe(other.id);
  });

  test('finds the same credential after the encryption key was rotated', async () => {
    const config = refreshing({ refresh_token: secret('rotated') });
    const id = await idOf(await issueOauth(config));
    const keys = `${generateEncryptionKey('newer')},${stack.keys.encryption}`;
    const rotated = await startOwnIssuer(stack, { encryptionKeys: readEncryptionKeys(keys) });
    expect(await idOf(await issueOauth(config, rotated))).toBe(id);
    await rotated.close();
  });

  test('sent with another client secret gives its credential a new version', async () => {
    const config = refreshing({ refresh_token: secret('amended'), client_secret: secret('mistyped') });
    const first = await credentialOf(await issueOauth(config));
    const repaired = { ...config, client_secret: secret('right') };
    const second = await credentialOf(await issueOauth(repaired));
    expect(second).toMatchObject({ id: first.id, version: first.version + 1 });
    expect(unsealed(stack, second)).toEqual({ type: 'oauth', ...repaired });
    expect(await credentialOf(await issueOauth(repaired))).toEqual(second);
  });

  test('lets servers share a credential; without one, each server has its own', async () => {
    const config = {
      token_url: 'https://id.example.com/token',
      client_id: 'client',
      client_secret: secret('client'),
    };
    const before = await stack.db.$count(oauthTokens);
    const [a, b] = [await issueOauth(config), await issueOauth(config)];
    expect(await idOf(a)).not.toBe(await idOf(b));
    expect(unsealed(stack, await credentialOf(a))).toEqual({ type: 'oauth', ...config });
    expect(await stack.db.$count(oauthTokens)).toBe(before);
  });
});

describe('no secret', () => {
  const servers = [
    { ...server, name: 'bearer', auth_type: 'bearer', auth_config: { token: secret('bearer') } },
    { ...server, name: 'key', auth_type: 'api_key', auth_config: { key: secret('key'), query: 'k' } },
    { ...server, name: 'access', auth_type: 'oauth', auth_config: { access_token: secret('access') } },
    { ...server, name: 'refresh', auth_type: 'oauth', auth_config: refreshing() },
  ];

  test('is quoted in a refusal, whatever the request contains', async () => {
    const wrong: [object, string][] = [
      [{ auth_type: 'bearer', auth_config: { token: secret('a b') } }, 'token'],
      [{ auth_type: 'bearer', auth_config: { token: [secret('a')] } }, 'token'],
      [{ auth_type: 'bearer', auth_config: { token: secret('a').repeat(1000) } }, 'token'],
      [{ auth_type: 'api_key', auth_config: { key: secret('a\n') } }, 'key'],
      [{ auth_type: 'oauth', auth_config: refreshing({ token_url: secret('a') }) }, 'token_url'],
      [{ auth_type: 'oauth', auth_config: refreshing({ access_token: secret('a') }) }, ''],
      [{ auth_type: 'none', auth_config: { token: secret('a') } }, ''],
      [{ auth_type: secret('a') }, ''],
      [{ url: `https://user:${secret('a')}@a.example` }, ''],
    ];
    for (const [fields, field] of wrong) {
      const sent = await sendMcp(stack, { servers: [{ ...server, ...fields }] });
      expect(sent.status, sent.text).toBe(400);
      expect(sent.text + JSON.stringify([...sent.headers])).not.toContain(MARK);
      if (field !== '') refused(sent, 'invalid_request', `servers[0].auth_config.${field}`);
    }
  });

  test('and no token of an issued URL is in plain text in Postgres or in a log line', async () => {
    const marked = `user-${MARK}`;
    const headers = { 'idempotency-key': 'once' };
    const sent = await sendMcp(stack, { servers, external_user: marked }, headers);
    expect((await sendMcp(stack, { servers, external_user: marked }, headers)).text).toBe(sent.text);
    const answer = JSON.parse(sent.text) as McpPresignAnswer;
    // The search finds a text that is not secret, so it works.
    expect(await tablesWith(MARK)).toEqual(['grants']);
    await stack.db.update(grants).set({ externalUser: null }).where(eq(grants.externalUser, marked));
    const tokens = [answer.bundle_token, ...servers.map(({ name }) => serverToken(answer, name))];
    const parts = [MARK, stack.apiKey, 'v4.public', ...tokens.map((token) => token.slice(-40))];
    for (const part of parts) expect(await tablesWith(part)).toEqual([]);
    expect(stack.logs.length).toBeGreaterThan(10);
    expect(stack.logs.filter((line) => parts.some((part) => line.includes(part)))).toEqual([]);
  });
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
  expect(tables.length).toBeGreaterThan(9);
  return found;
}

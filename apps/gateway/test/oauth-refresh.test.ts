import { PGlite } from '@electric-sql/pglite';
import { MIGRATIONS } from '@presign/schema/migrations';
import { accounts, credentials, oauthTokens } from '@presign/schema/tables';
import { connectDatabase, type Database, DRIZZLE } from '@presign/service/database';
import { eq, sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/pglite';
import { migrate } from 'drizzle-orm/pglite/migrator';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { McpCredential } from '../src/mcp/auth/authorize.ts';
import {
  type AuthorizationServer,
  answerJson,
  DESCRIPTION,
  startAuthorizationServer,
} from './authorization-server.ts';
import { clock, credentialWith, type OauthGateway, oauthGateway } from './oauth-gateway.ts';

let pglite: PGlite;
let db: Database;
let server: AuthorizationServer;
let one: OauthGateway;
let two: OauthGateway;
let credential: McpCredential;

beforeAll(async () => {
  pglite = await PGlite.create();
  const embedded = drizzle({ client: pglite, ...DRIZZLE });
  await migrate(embedded, { migrationsFolder: MIGRATIONS });
  db = embedded as unknown as Database;
}, 60_000);
afterAll(() => pglite.close());

beforeEach(async () => {
  server = await startAuthorizationServer();
  one = oauthGateway(db);
  two = oauthGateway(db);
  credential = await handIn();
});
afterEach(() => server.close());

/** Stores a credential as the issuer does when a caller hands in a refresh token. */
async function handIn(more: object = {}): Promise<McpCredential> {
  const handedIn = credentialWith({
    type: 'oauth',
    token_url: server.url,
    client_id: 'client-0',
    client_secret: 'client-secret-0',
    refresh_token: 'refresh-token-0',
    ...more,
  });
  const { id, accountId } = handedIn;
  await db.insert(accounts).values({ id: accountId, name: 'account' });
  await db.insert(credentials).values({ id, accountId, sealed: 'sealed' });
  await db.insert(oauthTokens).values({ credentialId: id, origin: id });
  return handedIn;
}

const times = <T>(count: number, run: () => T | Promise<T>) =>
  Promise.all(Array.from({ length: count }, run));

const carrying = (token: string) => ({
  authorization: { headers: [['Authorization', `Bearer ${token}`]], token },
});

async function rowOf({ id }: McpCredential) {
  const [row] = await db.select().from(oauthTokens).where(eq(oauthTokens.credentialId, id));
  return row;
}

const leaseUntil = ({ id }: McpCredential, seconds: number) =>
  db
    .update(oauthTokens)
    .set({ leasedUntil: sql`now() + make_interval(secs => ${seconds})` })
    .where(eq(oauthTokens.credentialId, id));

const sentTokens = () => server.requests.map(({ form }) => form.refresh_token);

test('two gateways with 50 calls each refresh once', async () => {
  const answers = await Promise.all([one, two].map((each) => times(50, () => each.authorize(credential))));
  expect(answers.flat()).toEqual(Array.from({ length: 100 }, () => carrying('access-token-1')));
  expect(sentTokens()).toEqual(['refresh-token-0']);
});

test('scope, audience and client go with a refresh', async () => {
  await one.authorize(await handIn({ scope: 'tools', audience: 'https://mcp.example' }));
  expect(server.requests[0]?.headers.authorization).toBe(`Basic ${btoa('client%2D0:client%2Dsecret%2D0')}`);
  expect(server.requests[0]?.form).toEqual({
    grant_type: 'refresh_token',
    refresh_token: 'refresh-token-0',
    scope: 'tools',
    audience: 'https://mcp.example',
    resource: 'https://mcp.example.com/mcp',
  });
});

test('a public client sends its id and no authentication', async () => {
  await one.authorize(await handIn({ client_secret: undefined }));
  expect(server.requests[0]?.headers.authorization).toBeUndefined();
  expect(server.requests[0]?.form).toEqual({
    grant_type: 'refresh_token',
    refresh_token: 'refresh-token-0',
    client_id: 'client-0',
    resource: 'https://mcp.example.com/mcp',
  });
});

test('new tokens are stored sealed in Postgres before a call gets one', async () => {
  const answer = await one.authorize(credential);
  const row = await rowOf(credential);
  expect(answer).toEqual(carrying('access-token-1'));
  expect(row).toMatchObject({ version: 1, leasedUntil: null });
  expect(row?.sealed).toMatch(/^k1\.[\w-]+$/);
});

test('a refresh chain survives its gateway: another gateway continues with the stored tokens', async () => {
  await one.authorize(credential);
  expect(await two.authorize(credential)).toEqual(carrying('access-token-1'));
  expect(sentTokens()).toEqual(['refresh-token-0']);
  clock.ms += 3_600_000;
  expect(await oauthGateway(db).authorize(credential)).toEqual(carrying('access-token-2'));
  expect(await two.authorize(credential)).toEqual(carrying('access-token-2'));
  expect(sentTokens()).toEqual(['refresh-token-0', 'refresh-token-1']);
});

test('if the server sends no new refresh token, the old one is used again', async () => {
  await one.authorize(credential);
  server.rotates = false;
  for (const gateway of [two, one]) {
    clock.ms += 3_600_000;
    await gateway.authorize(credential);
  }
  expect(sentTokens()).toEqual(['refresh-token-0', 'refresh-token-1', 'refresh-token-1']);
});

test('a token that is refused at two gateways is refreshed once', async () => {
  await Promise.all([one.authorize(credential), two.authorize(credential)]);
  const answers = await Promise.all(
    [one, two].map((each) => times(20, () => each.authorize(credential, 'access-token-1'))),
  );
  expect(answers.flat()).toEqual(Array.from({ length: 40 }, () => carrying('access-token-2')));
  expect(sentTokens()).toEqual(['refresh-token-0', 'refresh-token-1']);
});

test('a call with a refused token gets a new one, even while another call only loads the stored one', async () => {
  await one.authorize(credential);
  const answers = await Promise.all([two.authorize(credential), two.authorize(credential, 'access-token-1')]);
  expect(answers).toEqual([carrying('access-token-1'), carrying('access-token-2')]);
  expect(sentTokens()).toEqual(['refresh-token-0', 'refresh-token-1']);
});

test('other gateways wait for the gateway that has the lease', async () => {
  const release = server.hold();
  const first = one.authorize(credential);
  await server.reached(1);
  const second = two.authorize(credential);
  // Time enough for a gateway that does not wait.
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(sentTokens()).toEqual(['refresh-token-0']);
  release();
  expect(await Promise.all([first, second])).toEqual([
    carrying('access-token-1'),
    carrying('access-token-1'),
  ]);
  expect(sentTokens()).toEqual(['refresh-token-0']);
});

test('the lease of a gateway that died while refreshing expires, and another gateway takes it over', async () => {
  await leaseUntil(credential, 0.5);
  const answers = await Promise.all([one, two].map((each) => times(5, () => each.authorize(credential))));
  expect(answers.flat()).toEqual(Array.from({ length: 10 }, () => carrying('access-token-1')));
  expect(sentTokens()).toEqual(['refresh-token-0']);
});

test('a lease lasts longer than a request and a statement may take, and expires', async () => {
  const release = server.hold();
  const first = one.authorize(credential);
  await server.reached(1);
  const seconds = sql<number>`extract(epoch from ${oauthTokens.leasedUntil} - now())::float8`;
  const [lease] = await db
    .select({ seconds })
    .from(oauthTokens)
    .where(eq(oauthTokens.credentialId, credential.id));
  release();
  await first;
  expect(lease?.seconds).toBeGreaterThan(20);
  expect(lease?.seconds).toBeLessThan(30);
});

test('if two gateways refresh despite the lease, both use the tokens that were stored first', async () => {
  server.rotates = false;
  const release = server.hold();
  const slow = one.authorize(credential);
  await server.reached(1);
  // As if it had hung for longer than its lease.
  await leaseUntil(credential, -1);
  const overtaking = two.authorize(credential);
  await server.reached(2);
  release();
  const [late, first] = await Promise.all([slow, overtaking]);
  expect(late).toEqual(first);
  expect(await oauthGateway(db).authorize(credential)).toEqual(first);
  expect((await rowOf(credential))?.version).toBe(1);
});

test('a gateway whose refresh fails uses the tokens that another gateway stored meanwhile', async () => {
  const release = server.hold();
  const slow = one.authorize(credential);
  await server.reached(1);
  await leaseUntil(credential, -1);
  const overtaking = two.authorize(credential);
  await server.reached(2);
  release();
  // The refresh token is good once, so one of the two heard invalid_grant.
  const [late, first] = await Promise.all([slow, overtaking]);
  expect(late).toEqual(carrying('access-token-1'));
  expect(first).toEqual(carrying('access-token-1'));
});

test('a refused refresh releases its lease, and its error contains neither token nor description', async () => {
  server.refreshToken = 'another';
  const answer = await one.authorize(credential);
  expect(answer).toEqual({
    refusal: {
      code: 'upstream_auth_failed',
      message: 'The authorization server gave no access token (invalid_grant).',
    },
  });
  expect(await rowOf(credential)).toMatchObject({ sealed: null, version: 0, leasedUntil: null });
  for (const secret of ['refresh-token-0', 'client-secret-0', DESCRIPTION])
    expect(one.logged()).not.toContain(secret);
});

test.each([
  ['has no access token', 201, {}],
  ['has one that cannot be sent', 200, { access_token: 'a b', token_type: 'Bearer' }],
  ['has one of another type', 200, { access_token: 'a', token_type: 'mac' }],
  ['is an error of the server', 500, {}],
  ['is an error of the client', 400, {}],
  ['refuses the client', 401, {}],
])('a new refresh token is kept, although its answer %s', async (_name, status, members) => {
  server.misbehaves = (_, response) => {
    server.misbehaves = undefined;
    server.refreshToken = 'refresh-token-1';
    answerJson(response, status, { ...members, refresh_token: 'refresh-token-1' });
  };
  expect(await one.authorize(credential)).toMatchObject({ refusal: { code: 'upstream_auth_failed' } });
  expect(await two.authorize(credential)).toEqual(carrying('access-token-1'));
  expect(sentTokens()).toEqual(['refresh-token-0', 'refresh-token-1']);
});

test('tokens that Postgres failed to store are not used, and not lost', async () => {
  await db.execute(sql`create function refuse() returns trigger language plpgsql as
    $$ begin raise exception 'going away' using errcode = '57P01'; end $$`);
  await db.execute(sql`create trigger refuse before update on oauth_tokens for each row
    when (new.version > old.version) execute function refuse()`);
  expect(await one.authorize(credential)).toMatchObject({ refusal: { code: 'database_unavailable' } });
  expect((await rowOf(credential))?.sealed).toBeNull();
  expect(await one.authorize(credential)).toMatchObject({ refusal: { code: 'database_unavailable' } });
  await db.execute(sql`drop function refuse cascade`);
  // The refresh token that was handed in is used up: only the tokens that were kept can help.
  expect(await one.authorize(credential)).toEqual(carrying('access-token-1'));
  expect(await two.authorize(credential)).toEqual(carrying('access-token-1'));
  expect(sentTokens()).toEqual(['refresh-token-0']);
});

test('a cached token needs no Postgres', async () => {
  await one.authorize(credential);
  await db.execute(sql`alter table oauth_tokens rename to hidden`);
  try {
    expect(await one.authorize(credential)).toEqual(carrying('access-token-1'));
    expect(await two.authorize(credential)).toEqual({ refusal: { code: 'internal_error' } });
  } finally {
    await db.execute(sql`alter table hidden rename to oauth_tokens`);
  }
});

test('without Postgres nothing is refreshed', async () => {
  const { db: gone, close } = connectDatabase('postgres://nobody@127.0.0.1:1/nothing');
  try {
    const gateway = oauthGateway(gone);
    expect(await gateway.authorize(credential)).toEqual({
      refusal: { code: 'database_unavailable', retryAfterSeconds: 1 },
    });
    expect(sentTokens()).toEqual([]);
  } finally {
    await close();
  }
});

test('stored tokens unseal only for their own credential', async () => {
  await one.authorize(credential);
  const other = await handIn();
  const { sealed } = (await rowOf(credential)) ?? {};
  await db
    .update(oauthTokens)
    .set({ sealed: sealed ?? null, version: 1 })
    .where(eq(oauthTokens.credentialId, other.id));
  expect(await two.authorize(other)).toEqual({ refusal: { code: 'internal_error' } });
  expect(two.logged()).toContain('not_authentic');
  expect(sentTokens()).toEqual(['refresh-token-0']);
});

test('a refresh token without a row is not used, because its successor could not be stored', async () => {
  const { id } = credential;
  await db.delete(oauthTokens).where(eq(oauthTokens.credentialId, id));
  expect(await one.authorize(credential)).toEqual({ refusal: { code: 'internal_error' } });
  expect(sentTokens()).toEqual([]);
});

test('no token or secret of any request, answer or row is in a log', async () => {
  await one.authorize(credential);
  await one.authorize(credential, 'access-token-1');
  server.close();
  await two.authorize(credential, 'access-token-2');
  expect(two.logged()).toContain('no access token');
  expect(one.logged() + two.logged()).not.toMatch(/(access|refresh)-token|client-secret/);
});

import { randomUUID } from 'node:crypto';
import { generateEncryptionKey, readEncryptionKeys, seal, sealedWith, unseal } from '@presign/crypto';
import { scanCredentials } from '@presign/limits';
import {
  credentialContext,
  credentials,
  oauthTokens,
  oauthTokensContext,
  virtualKeys,
} from '@presign/schema/tables';
import { webhookContext, webhooks } from '@presign/schema/webhook-tables';
import { and, eq, isNull, ne, sql } from 'drizzle-orm';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type GatewayProcess, startGatewayProcess } from '../harness/gateway-process.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { thorough } from '../harness/thorough.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { ownAccount } from './accounts.ts';
import { least } from './ask.ts';
import { issueMcp, server } from './ask-mcp.ts';
import { endOf, presign, spawnPresign } from './command.ts';
import { type OwnIssuer, startOwnIssuer } from './own-issuer.ts';
import { canReachDatabase, reachableDatabase } from './reachable-database.ts';
import { askVirtualKeys, createVirtualKey } from './virtual-keys.ts';

const NEW = generateEncryptionKey('new');
const newKeys = readEncryptionKeys(NEW);

let removeDatabase: () => Promise<void>;
let upstream: Upstream;
/** Its issuer and gateway have the old key alone. */
let stack: Stack;
let env: Record<string, string>;
/** The functions that end what a test started. */
const ends: (() => Promise<unknown>)[] = [];

describe.skipIf(!canReachDatabase)('reseal', () => {
  beforeAll(async () => {
    removeDatabase = await reachableDatabase();
    upstream = await startUpstream((seen, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ key: seen.headers.authorization }));
    });
    stack = await startStack({ providers: { openai: { base_url: upstream.url } } });
    env = {
      DATABASE_URL: stack.databaseUrl ?? '',
      REDIS_URL: stack.redisUrl,
      ENCRYPTION_KEYS: `${NEW},${stack.keys.encryption}`,
    };
  });
  afterEach(async () => {
    for (const end of ends.splice(0)) await end();
  });
  afterAll(async () => {
    await stack.close();
    await upstream.close();
    await removeDatabase();
  });

  const gatewayWith = async (encryption: string): Promise<GatewayProcess> => {
    const gateway = await startGatewayProcess(stack, { ENCRYPTION_KEYS: encryption });
    ends.push(gateway.stop);
    return gateway;
  };
  const issuerWith = async (encryption: string): Promise<OwnIssuer> => {
    const issuer = await startOwnIssuer(stack, { encryptionKeys: readEncryptionKeys(encryption) });
    ends.push(issuer.close);
    return issuer;
  };
  const at = (gateway: GatewayProcess, url: string) => url.replace(stack.gatewayUrls[0] ?? '', gateway.url);
  const keyOf = async (url: string): Promise<string> => {
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(url, { method: 'POST', headers, body: '{"model":"m"}' });
    return answer.status === 200 ? ((await answer.json()) as { key: string }).key : `status ${answer.status}`;
  };
  const issueOwn = async (on: { issuerUrl: string }, key: string): Promise<[url: string, key: string]> => {
    const headers = { authorization: `Bearer ${stack.apiKey}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ ...least, client_api_key: key });
    const answer = await fetch(`${on.issuerUrl}/v1/presign`, { method: 'POST', headers, body });
    return [((await answer.json()) as { url: string }).url, `Bearer ${key}`];
  };
  /** Ids of the keys that anything in the stores is sealed with. */
  const sealingKeys = async (): Promise<Set<string>> => {
    const rows = [
      ...(await stack.db.select().from(credentials).where(ne(credentials.sealed, ''))),
      ...(await stack.db.select().from(oauthTokens)),
      ...(await stack.db.select().from(webhooks).where(ne(webhooks.sealed, ''))),
      ...(await stack.db.select({ sealed: webhooks.previousSealed }).from(webhooks)),
    ];
    const sealed = rows.flatMap((row) => row.sealed ?? []);
    for await (const copies of scanCredentials(stack.redis))
      sealed.push(...copies.map((copy) => copy.sealed));
    const origins = await stack.db.select().from(oauthTokens);
    return new Set([...sealed.map(sealedWith), ...origins.map(({ origin }) => origin.split('.')[0] ?? '')]);
  };

  const refreshing = {
    auth_type: 'oauth',
    auth_config: { token_url: 'https://id.example.com/token', client_id: 'c', refresh_token: 'rt-first' },
  };
  const issueOauth = (on: Parameters<typeof issueMcp>[0]) =>
    issueMcp(on, { servers: [{ ...server, ...refreshing }] });

  /** Seals every other kind of secret than providers' keys with the old key. */
  async function sealOthers(): Promise<{ bundleUrl: string; oauthId: string; webhookId: string }> {
    const accountId = await ownAccount(stack);
    const oldKeys = readEncryptionKeys(stack.keys.encryption);
    const { bundle_url: bundleUrl } = await issueOauth(stack);
    const [chain] = await stack.db.select().from(oauthTokens);
    const oauthId = chain?.credentialId ?? '';
    const tokens = seal(oldKeys, '{"accessToken":"at"}', oauthTokensContext(accountId, oauthId));
    await stack.db.update(oauthTokens).set({ sealed: tokens, version: 3 });
    const webhookId = randomUUID();
    const sealSecret = (secret: string) => seal(oldKeys, secret, webhookContext(accountId, webhookId));
    await stack.db.insert(webhooks).values({
      ...{ id: webhookId, accountId, url: 'https://example.com', events: null },
      ...{ sealed: sealSecret('whsec_now'), previousSealed: sealSecret('whsec_before') },
      disabledAt: new Date(),
    });
    // As of a deleted account.
    const erased = { sealed: '', disabledAt: new Date() };
    await stack.db
      .insert(webhooks)
      .values({ id: randomUUID(), accountId, url: 'https://example.com', events: null, ...erased });
    const { id } = await createVirtualKey(stack, { name: 'deleted' });
    await askVirtualKeys(stack, 'DELETE', `/${id}`);
    return { bundleUrl, oauthId, webhookId };
  }

  test.runIf(thorough)(
    'runs during calls, issuing and rotations, survives an interruption, and makes the old key unnecessary',
    async () => {
      const { bundleUrl, oauthId, webhookId } = await sealOthers();
      const accountId = await ownAccount(stack);
      const own = await Promise.all(Array.from({ length: 120 }, (_, i) => issueOwn(stack, `sk-own-${i}`)));
      const loaded = own.slice(0, 60);
      for (const [url, key] of loaded) expect(await keyOf(url)).toBe(key);
      const { id: virtualKey } = await createVirtualKey(stack, { key: 'sk-v-0' });
      const shared = await Promise.all(
        Array.from({ length: 8 }, () =>
          stack.issue({ provider: 'openai', path: least.path, virtual_key: virtualKey }),
        ),
      );
      for (const { url } of shared) await keyOf(url);
      expect(await sealingKeys()).not.toContain('new');

      const gateway = await gatewayWith(env.ENCRYPTION_KEYS ?? '');
      const issuer = await issuerWith(env.ENCRYPTION_KEYS ?? '');
      const issued: [string, string][] = [];
      const wrong: string[] = [];
      const load = { ended: false, calls: 0 };
      const call = async (i: number) => {
        for (let n = i; !load.ended; n += 3) {
          // Half of the unloaded ones are loaded meanwhile, by what Postgres says just then.
          const [url, key] = own[n % 90] ?? ['', ''];
          const used = await keyOf(at(gateway, url));
          if (used !== key) wrong.push(`${used}, not ${key}`);
          load.calls++;
        }
      };
      let rotations = 0;
      const change = async () => {
        for (let i = 1; !load.ended; i++) {
          issued.push(await issueOwn(issuer, `sk-new-${i}`));
          const body = { key: `sk-v-${i}` };
          const rotate = () => askVirtualKeys(issuer, 'POST', `/${virtualKey}/rotate`, body);
          let rotated = await rotate();
          // Redis has the key only after a 200. Asking again is how a caller learns it.
          while (rotated.status === 202) rotated = await rotate();
          if (rotated.status !== 200) wrong.push(rotated.text);
          rotations = i;
          const used = await keyOf(at(gateway, shared[i % 8]?.url ?? ''));
          if (used !== `Bearer sk-v-${i}`) wrong.push(`${used}, not sk-v-${i}`);
        }
      };
      const running = [call(0), call(1), call(2), change()];

      const broken = spawnPresign(['reseal', '--batch', '1', '--wait', '0'], env);
      const ended = endOf(broken);
      await eventually(async () => ((await sealingKeys()).has('new') ? true : undefined));
      broken.kill('SIGKILL');
      await ended;
      const { code, err } = await presign(['reseal', '--batch', '7', '--wait', '2'], env);
      expect(code, err).toBe(0);
      expect(err).toContain('Everything stored is sealed with new.');
      expect(await sealingKeys()).toEqual(new Set(['new']));
      load.ended = true;
      await Promise.all(running);
      expect(wrong).toEqual([]);
      expect(load.calls).toBeGreaterThan(20);
      expect(rotations).toBeGreaterThan(1);

      // The old key is gone: all that is there opens with the new one alone.
      const after = await gatewayWith(NEW);
      for (const [url, key] of [...own, ...issued]) expect(await keyOf(at(after, url))).toBe(key);
      for (const { url } of shared) expect(await keyOf(at(after, url))).toBe(`Bearer sk-v-${rotations}`);
      expect((await fetch(at(after, bundleUrl))).status).toBe(200);
      const [chain] = await stack.db.select().from(oauthTokens).where(eq(oauthTokens.credentialId, oauthId));
      expect(chain?.version).toBe(3);
      const tokens = unseal(newKeys, chain?.sealed ?? '', oauthTokensContext(accountId, oauthId));
      expect(tokens).toBe('{"accessToken":"at"}');
      await issueOauth(await issuerWith(NEW));
      expect(await stack.db.$count(oauthTokens)).toBe(1);
      const [hook] = await stack.db.select().from(webhooks).where(eq(webhooks.id, webhookId));
      const secrets = [hook?.sealed, hook?.previousSealed].map((sealed) =>
        unseal(newKeys, sealed ?? '', webhookContext(accountId, webhookId)),
      );
      expect(secrets).toEqual(['whsec_now', 'whsec_before']);
    },
    180_000,
  );

  test('never undoes a rotation that happens between its read and its write, and reseals the rotated key too', async () => {
    const accountId = await ownAccount(stack);
    const { id: virtualKey } = await createVirtualKey(stack, { key: 'sk-before' });
    const [key] = await stack.db.select().from(virtualKeys).where(eq(virtualKeys.id, virtualKey));
    const id = key?.credentialId ?? '';
    const context = credentialContext(accountId, id);
    const sealed = seal(readEncryptionKeys(stack.keys.encryption), 'sk-after', context);
    const isWaiting = sql`datname = current_database() and wait_event_type = 'Lock'`;
    const resealing = await stack.db.transaction(async (tx) => {
      await tx.update(credentials).set({ sealed, version: 2 }).where(eq(credentials.id, id));
      const begun = presign(['reseal', '--wait', '0'], env);
      // It has read the row as it was, and waits for this transaction to write it.
      await eventually(async () =>
        (await stack.db.$count(sql`pg_stat_activity`, isWaiting)) > 0 ? true : undefined,
      );
      return { ended: begun };
    });
    expect((await resealing.ended).code).toBe(0);
    const [row] = await stack.db.select().from(credentials).where(eq(credentials.id, id));
    expect(row?.version).toBe(2);
    expect(unseal(newKeys, row?.sealed ?? '', context)).toBe('sk-after');
  });

  test('changes no version, so that no gateway reloads, and a second run changes nothing', async () => {
    await issueOwn(stack, 'sk-again');
    const versions = () =>
      stack.db
        .select({ id: credentials.id, version: credentials.version })
        .from(credentials)
        .orderBy(credentials.id);
    const before = await versions();
    expect((await presign(['reseal', '--wait', '0'], env)).err).toContain('1 resealed');
    expect(await versions()).toEqual(before);
    expect((await presign(['reseal', '--wait', '0'], env)).err).not.toContain('resealed');
  });

  test('exits with code 1 and reports rows with an unknown key, and reseals the others', async () => {
    const accountId = await ownAccount(stack);
    const id = randomUUID();
    const foreign = seal(
      readEncryptionKeys(generateEncryptionKey('foreign')),
      'x',
      credentialContext(accountId, id),
    );
    await stack.db.insert(credentials).values({ id, accountId, sealed: foreign });
    await issueOwn(stack, 'sk-beside');
    const { code, err } = await presign(['reseal', '--wait', '0'], env);
    expect(code).toBe(1);
    expect(err).toContain('credentials: 1 resealed, 1 not');
    expect(await sealingKeys()).toEqual(new Set(['new', 'foreign']));
    const own = and(eq(credentials.id, id), isNull(credentials.revokedAt));
    expect((await stack.db.select().from(credentials).where(own))[0]?.sealed).toBe(foreign);
  });
});

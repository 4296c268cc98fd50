import { randomUUID } from 'node:crypto';
import {
  generateApiKey,
  generateEncryptionKey,
  generateSigningKey,
  looksLikeApiKey,
  readEncryptionKeys,
  readPublicKeys,
  readSigningKey,
} from '@presign/crypto';
import type { ApiKeyAnswer, VirtualKeyAnswer } from '@presign/schema';
import { grants } from '@presign/schema/tables';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { claimsOf, least, refused, send } from './ask.ts';
import { endOf, presign, spawnPresign } from './command.ts';
import { canReachDatabase, reachableDatabase } from './reachable-database.ts';

const COMMANDS = [
  ['accounts', 'create'],
  ['accounts', 'list'],
  ['accounts', 'show'],
  ['accounts', 'change'],
  ['accounts', 'suspend'],
  ['accounts', 'resume'],
  ['accounts', 'delete'],
  ['api-keys', 'create'],
  ['api-keys', 'list'],
  ['api-keys', 'revoke'],
  ['virtual-keys', 'create'],
  ['virtual-keys', 'list'],
  ['virtual-keys', 'rotate'],
  ['virtual-keys', 'delete'],
  ['token-keys', 'rotate'],
  ['token-keys', 'status'],
  ['encryption-keys', 'rotate'],
  ['reseal'],
  ['doctor'],
];

describe('without any store', () => {
  test('--help lists every command, and each command lists its options', async () => {
    const { code, out } = await presign(['--help']);
    expect(code).toBe(0);
    for (const command of COMMANDS) expect(out).toContain(`  ${command.join(' ')} `);
    for (const command of COMMANDS) {
      const help = await presign([...command, '--help']);
      expect(help.code).toBe(0);
      expect(help.out).toMatch(new RegExp(`^Usage: npx -y pnpm@12 presign ${command.join(' ')}`));
    }
  });

  test.each([
    [['nonsense'], 'no command "nonsense"'],
    [['api-keys'], 'no command "api-keys"'],
    [['api-keys', 'create', '--nmae', 'x'], "Unknown option '--nmae'"],
    [
      ['api-keys', 'create', '--name', 'x', '--scopes', 'root'],
      'scopes[0]: expected one of presign, read, admin, operator',
    ],
    [['api-keys', 'create', '--name', 'x', '--scopes', 'read', '--expires-in', '1h'], 'expires_in: expected'],
    [['api-keys', 'create', '--name', 'x', '--scopes', 'read', '--policy', '{'], '--policy: expected JSON'],
    [
      ['api-keys', 'create', '--name', 'x', '--scopes', 'read', '--policy', '{"higest": {}}'],
      'policy.higest: this field is not known (did you mean highest?)',
    ],
    [['api-keys', 'revoke'], 'ID is missing'],
    [['api-keys', 'list', 'more'], 'unexpected argument "more"'],
    [['reseal', '--batch', '0'], '--batch: expected a whole number'],
  ])('an invalid command line (%j) gets the reason, and exit code 2', async (args, why) => {
    const env = { ENCRYPTION_KEYS: generateEncryptionKey('k1') };
    const { code, out, err } = await presign(args, env);
    expect([code, out]).toEqual([2, '']);
    expect(err).toContain(why);
  });

  test('a missing variable or a store that does not answer gives one line that names it, and exit code 1', async () => {
    const missing = await presign(['api-keys', 'list']);
    expect(missing.err).toMatch(/^presign api-keys list: DATABASE_URL is missing: .*\n$/);
    const away = await presign(['api-keys', 'list'], { DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' });
    expect(away.err).toMatch(/^presign api-keys list: DATABASE_URL: Postgres does not answer.*\n$/);
    expect([missing.code, missing.out, away.code, away.out]).toEqual([1, '', 1, '']);
  });

  test('as a process it has the same exit codes, and reads standard input', async () => {
    expect(await endOf(spawnPresign(['nonsense'], {}))).toMatchObject({ code: 2, out: '' });
    expect((await endOf(spawnPresign(['--help'], {}))).code).toBe(0);
    const args = ['virtual-keys', 'create', '--provider', 'no-such', '--name', 'x'];
    const env = { ENCRYPTION_KEYS: generateEncryptionKey('k1') };
    expect((await endOf(spawnPresign(args, env, ''))).err).toContain('standard input is empty');
    const read = await endOf(spawnPresign(args, env, 'sk-x'));
    expect(read).toMatchObject({ code: 1, out: '' });
    expect(read.err).toContain('DATABASE_URL is missing');
  });

  test('token-keys rotate prints a key pair, keeps the existing keys, and lists the steps', async () => {
    const [older, present] = [generateSigningKey(), generateSigningKey()];
    const publicKeys = [older, present].map((key) => readSigningKey(key).publicKey);
    const { code, out, err } = await presign(['token-keys', 'rotate'], {
      TOKEN_SIGNING_KEY: present,
      TOKEN_PUBLIC_KEYS: publicKeys.join(', '),
    });
    expect(code).toBe(0);
    const made = Object.fromEntries(
      out
        .trim()
        .split('\n')
        .map((line) => line.split('=', 2)),
    );
    const { publicKey, kid } = readSigningKey(made.TOKEN_SIGNING_KEY ?? '');
    expect(publicKeys).not.toContain(publicKey);
    expect([...readPublicKeys(made.TOKEN_PUBLIC_KEYS ?? '').keys()][0]).toBe(kid);
    expect(made.TOKEN_PUBLIC_KEYS?.split(',').sort()).toEqual([publicKey, ...publicKeys].sort());
    expect(err.search(/1\. Add/)).toBeGreaterThan(0);
    expect(err.search(/2\. Sign/)).toBeGreaterThan(err.search(/1\. Add/));
    expect(err.search(/3\. Remove/)).toBeGreaterThan(err.search(/2\. Sign/));
    expect(err).not.toContain('k4.secret.');
  });

  test('token-keys rotate without the current keys prints no list, because it would end them', async () => {
    const { code, out, err } = await presign(['token-keys', 'rotate'], {});
    expect([code, out]).toEqual([1, '']);
    expect(err).toContain('TOKEN_PUBLIC_KEYS or TOKEN_SIGNING_KEY is needed');
    const first = await presign(['token-keys', 'rotate', '--first'], {});
    expect(first.code).toBe(0);
    expect(first.out).toMatch(/^TOKEN_SIGNING_KEY=k4\.secret\./);
  });

  test('encryption-keys rotate prints first the list that can unseal both, then the list that seals with the new key', async () => {
    const now = generateEncryptionKey('k1');
    const { code, out, err } = await presign(['encryption-keys', 'rotate', 'k2'], { ENCRYPTION_KEYS: now });
    expect(code).toBe(0);
    const [opens = '', seals = ''] = out.split('\n').map((line) => line.replace('ENCRYPTION_KEYS=', ''));
    expect(readEncryptionKeys(opens).ids).toEqual(['k1', 'k2']);
    expect(readEncryptionKeys(seals).ids).toEqual(['k2', 'k1']);
    expect(new Set(opens.split(','))).toEqual(new Set(seals.split(',')));
    expect(err).not.toContain(now.slice(3));
    const taken = await presign(['encryption-keys', 'rotate', 'k1'], { ENCRYPTION_KEYS: now });
    expect([taken.code, taken.out]).toEqual([2, '']);
  });
});

describe.skipIf(!canReachDatabase)('with running services', () => {
  let removeDatabase: () => Promise<void>;
  let upstream: Upstream;
  let stack: Stack;
  let env: Record<string, string>;

  beforeAll(async () => {
    removeDatabase = await reachableDatabase();
    upstream = await startUpstream();
    stack = await startStack({ gateways: 2, providers: { openai: { base_url: upstream.url } } });
    env = {
      DATABASE_URL: stack.databaseUrl ?? '',
      REDIS_URL: stack.redisUrl,
      ENCRYPTION_KEYS: stack.keys.encryption,
    };
  });
  afterAll(async () => {
    await stack.close();
    await upstream.close();
    await removeDatabase();
  });

  const done = async (args: readonly string[], input?: string) => {
    const left = await presign(args, env, input);
    expect(left.code, left.err).toBe(0);
    return { out: left.out.trimEnd(), err: left.err };
  };

  test('a created API key is the whole standard output, works at once, and is in no other output', async () => {
    const created = await done(['api-keys', 'create', '--name', 'by hand', '--scopes', 'presign,read']);
    expect(looksLikeApiKey(created.out)).toBe(true);
    expect(created.err).not.toContain(created.out);
    expect((await send(stack, { apiKey: created.out, body: least })).status).toBe(200);
    const listed = await done(['api-keys', 'list']);
    expect(listed.out).toContain('by hand');
    expect(listed.out).not.toContain(created.out);
    const json = JSON.parse((await done(['api-keys', 'list', '--json'])).out) as ApiKeyAnswer[];
    const made = json.find(({ name }) => name === 'by hand');
    expect(made?.scopes).toEqual(['presign', 'read']);
    await done(['api-keys', 'revoke', made?.id ?? '']);
    refused(await send(stack, { apiKey: created.out, body: least }), 'unauthenticated');
  });

  test('another account gets its first key here, and its last admin key cannot be revoked', async () => {
    const { out: account } = await done(['accounts', 'create', '--name', 'another']);
    expect((await done(['accounts', 'list'])).out).toContain(account);
    const args = ['--name', 'first', '--scopes', 'admin', '--account', account];
    const { out: key } = await done(['api-keys', 'create', ...args]);
    expect((await send(stack, { apiKey: key, method: 'GET', path: '/v1/api-keys' })).status).toBe(200);
    const listed = await done(['api-keys', 'list', '--json', '--account', account]);
    const [first] = JSON.parse(listed.out) as ApiKeyAnswer[];
    const last = await presign(['api-keys', 'revoke', first?.id ?? '', '--account', account], env);
    expect(last.code).toBe(1);
    expect(last.err).toContain('last valid admin key');
    for (const id of [first?.id ?? '', randomUUID(), generateApiKey()]) {
      expect((await presign(['api-keys', 'revoke', id], env)).code).toBe(1);
    }
    expect((await presign(['api-keys', 'list', '--account', randomUUID()], env)).code).toBe(1);
  });

  test('a virtual key is created, rotated and deleted; its key comes from standard input and is printed nowhere', async () => {
    const args = ['--provider', 'openai', '--name', 'cli', '--max-uses', '9', '--config', '{"max_tokens":5}'];
    const { out: id, err } = await done(['virtual-keys', 'create', ...args], 'sk-from-stdin\n');
    const { url } = await stack.issue({ provider: 'openai', path: least.path, virtual_key: id });
    const urls = stack.gatewayUrls.map((gateway) => url.replace(stack.gatewayUrls[0] ?? '', gateway));
    const post = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"model":"m"}' };
    const keysUsed = async () => {
      for (const each of urls) await (await fetch(each, post)).text();
      return upstream.seen.slice(-2).map(({ headers }) => headers.authorization);
    };
    expect(await keysUsed()).toEqual(['Bearer sk-from-stdin', 'Bearer sk-from-stdin']);
    const rotated = await done(['virtual-keys', 'rotate', id], 'sk-second');
    expect(await keysUsed()).toEqual(['Bearer sk-second', 'Bearer sk-second']);
    const json = JSON.parse((await done(['virtual-keys', 'list', '--json'])).out) as VirtualKeyAnswer[];
    const told = json.find((each) => each.id === id);
    expect(told).toMatchObject({
      version: 2,
      config: { max_tokens: 5 },
      budget: { max_uses: 9, live: { used: 4 } },
    });
    expect((await done(['virtual-keys', 'list'])).out).toContain(id);
    await done(['virtual-keys', 'delete', id]);
    for (const each of urls) expect((await fetch(each, post)).status).toBe(403);
    expect([err, rotated.out, rotated.err, JSON.stringify(json)].join('')).not.toMatch(/sk-(from|second)/);
  });

  test('a virtual key that cannot be created gets the reason, and leaves no rows', async () => {
    const create = ['virtual-keys', 'create', '--name', 'x'];
    const unknown = await presign([...create, '--provider', 'no-such'], env, 'sk-x');
    expect([unknown.code, unknown.out]).toEqual([1, '']);
    expect(unknown.err).toContain('expected one of');
    const keyless = await presign([...create, '--provider', 'openai'], env, ' \n');
    expect([keyless.code, keyless.out]).toEqual([1, '']);
    const badly = await presign([...create, '--provider', 'openai', '--config', '{'], env, 'sk-x');
    expect([badly.code, badly.out]).toEqual([2, '']);
  });

  test('token-keys status shows when the last URL issued before a time expires', async () => {
    const { url } = await stack.issue({ ...least, expires_in: -1 });
    const { exp, jti } = claimsOf(stack, url);
    const status = async (before: number) =>
      (await done(['token-keys', 'status', '--before', new Date(before).toISOString()])).out;
    const [row] = await stack.db.select().from(grants).where(eq(grants.id, jti));
    const issuedAt = row?.issuedAt.getTime() ?? 0;
    expect(await status(issuedAt + 1)).toContain(new Date(exp).toISOString());
    expect(await status(issuedAt - 3_600_000)).toContain('No URL issued before');
    const lowered = { signedUntil: row?.expiresAt, expiresAt: new Date(issuedAt + 60_000) };
    await stack.db.update(grants).set(lowered).where(eq(grants.id, jti));
    // It can be raised again.
    expect(await status(issuedAt + 1)).toContain(new Date(exp).toISOString());
    const signed = await presign(['token-keys', 'status'], { ...env, TOKEN_SIGNING_KEY: stack.keys.signing });
    expect(signed.out).toContain(readSigningKey(stack.keys.signing).kid);
    expect(signed.out).not.toContain('k4.secret');
  });
});

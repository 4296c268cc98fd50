import { generateEncryptionKey, generateSigningKey } from '@presign/crypto';
import { migrateDatabase } from '@presign/service/database';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { hasRedisServer, makeRedis, type RedisServer } from '../chaos/redis-server.ts';
import { presign } from './command.ts';
import { hasPostgres, makePostgres, type PostgresServer } from './postgres-server.ts';

const GB = 2 ** 30;

describe.skipIf(!hasRedisServer || !hasPostgres)('presign doctor, with stores of its own,', () => {
  let postgres: PostgresServer;
  let redis: RedisServer;
  let env: Record<string, string>;
  beforeAll(async () => {
    postgres = await makePostgres();
    await migrateDatabase(postgres.url);
    redis = await makeRedis('--appendfsync', 'everysec');
    env = {
      DATABASE_URL: postgres.url,
      REDIS_URL: `redis://127.0.0.1:${redis.port}`,
      TOKEN_SIGNING_KEY: generateSigningKey(),
      ENCRYPTION_KEYS: generateEncryptionKey('k1'),
      GATEWAY_URL: 'https://gateway.example.com',
      DATABASE_POOL_SIZE: '5',
    };
  });
  afterAll(async () => {
    await redis?.remove();
    await postgres?.remove();
  });
  const set = (name: string, value: string) => redis.command('CONFIG', 'SET', name, value);
  afterEach(async () => {
    await set('maxmemory', String(GB));
    await set('maxmemory-policy', 'noeviction');
    await set('appendonly', 'yes');
  });
  /** The lines of its answer without their columns' spaces. */
  const ask = async (args: readonly string[], changed: Readonly<Record<string, string>> = {}) => {
    const { code, out, err } = await presign(['doctor', ...args], { ...env, ...changed });
    return {
      code,
      err,
      lines: out
        .trim()
        .split('\n')
        .map((line) => line.replaceAll(/ {2,}/g, ' ')),
    };
  };
  const oneOf = (lines: readonly string[], text: string | RegExp) =>
    expect(
      lines.filter((line) => (typeof text === 'string' ? line.includes(text) : text.test(line))),
    ).toHaveLength(1);

  test('reports the settings that a configuration needs', async () => {
    await set('maxmemory', String(GB));
    const { lines } = await ask(['--gateways', '4', '--pool', '2', '--calls', '1000']);
    oneOf(
      lines,
      /^ok connections 2 × 5 for issuers, 4 × 2 for gateways and 4 to spare are 22 connections; Postgres has \d+$/,
    );
    oneOf(
      lines,
      /^needs memory while the ledger stops, one account can make 11\d{5} calls: 19 min at 1000 a second$/,
    );
    oneOf(lines, 'needs disk the ledger takes 22.5 TB in 400 days (LEDGER_KEPT_DAYS) at 1000 calls a second');
    oneOf(lines, 'needs log the logs of 4 gateways grow by 51.8 GB a day');
    oneOf(lines, 'ok secrets TOKEN_SIGNING_KEY can be read');
  });

  test.each<[name: string, says: string | RegExp, args: string[], changed: Record<string, string>]>([
    ['a missing secret', 'fix secrets TOKEN_SIGNING_KEY is missing', [], { TOKEN_SIGNING_KEY: '' }],
    ['a malformed secret', /^fix secrets ENCRYPTION_KEYS/, [], { ENCRYPTION_KEYS: 'k1' }],
    ['no address of the gateways', 'fix address GATEWAY_URL is missing', [], { GATEWAY_URL: '' }],
    ['too few connections', /^fix connections 2 × 5 for issuers, 100 × 5 /, ['--gateways', '100'], {}],
    ['no list of prices', 'fix prices neither PRICES_URL nor PRICES_FILE is set', [], {}],
    [
      'a list that no service has read',
      'fix prices no service has read the price list yet',
      [],
      { PRICES_FILE: '/none' },
    ],
  ])('asks for a change: %s', async (_name, says, args, changed) => {
    const { code, lines, err } = await ask(args, changed);
    oneOf(lines, says);
    expect([code, err]).toEqual([
      1,
      expect.stringMatching(/^presign doctor: \d+ of \d+ lines ask for a change\n$/),
    ]);
  });

  test.each([
    ['maxmemory', '0', 'fix memory Redis has no maxmemory'],
    ['maxmemory', String(2 ** 50), 'leave a tenth'],
    ['maxmemory-policy', 'allkeys-lru', 'fix redis Redis may drop keys'],
    ['appendonly', 'no', 'fix redis Redis has no append-only file'],
  ])('recommends a change of Redis: %s %s', async (name, value, says) => {
    await set(name, value);
    oneOf((await ask([])).lines, says);
  });
});

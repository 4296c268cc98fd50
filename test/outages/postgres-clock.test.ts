import { startEmbeddedRedis } from '@presign/local';
import { ledger } from '@presign/schema/ledger-tables';
import { connectDatabase, migrateDatabase } from '@presign/service/database';
import { sql } from 'drizzle-orm';
import { request } from 'undici';
import { describe, expect, test } from 'vitest';
import { startProviders } from '../gateway/providers.ts';
import { eventually } from '../harness/eventually.ts';
import { startStack } from '../harness/stack.ts';
import { claimsOf } from '../issuer/ask.ts';
import { hasPostgres, makePostgres } from '../issuer/postgres-server.ts';
import { fakeClock, hasFakeClock } from './fake-clock.ts';

const wanted = hasPostgres && hasFakeClock && Boolean(process.env.TEST_DATABASE_URL);

describe.skipIf(!wanted)('a wrong clock of Postgres', () => {
  test.each(['+3600', '-3600'])(
    'by %s seconds changes no limit, no expiry and no revocation',
    async (off) => {
      const postgres = await makePostgres({ env: fakeClock(off) });
      await migrateDatabase(postgres.url);
      const { db, close } = connectDatabase(postgres.url);
      const [row] = await db.execute(sql`select extract(epoch from now())::text as now`);
      expect(Math.round((Number(row?.['now']) - Date.now() / 1_000) / 60)).toBe(Number(off) / 60);
      const redis = await startEmbeddedRedis();
      const providers = await startProviders();
      const stack = await startStack({
        providers: providers.file,
        stores: { db, databaseUrl: postgres.url, redisUrl: redis.url, close },
      });
      const ask = { provider: 'openai', path: '/v1/x', client_api_key: 'sk-real', max_uses: 2 };
      const call = async (url: string) => {
        const answer = await request(url, { method: 'POST', body: '{}' });
        const body = (await answer.body.json()) as { error?: { code: string } };
        return body.error?.code ?? answer.statusCode;
      };

      const { url } = await stack.issue({ ...ask, expires_in: 600 });
      expect([await call(url), await call(url), await call(url)]).toEqual([200, 200, 'uses_exhausted']);
      const { url: short } = await stack.issue({ ...ask, expires_in: 1 });
      await eventually(async () => (await call(short)) === 'token_expired');
      const { url: revoked } = await stack.issue({ ...ask, expires_in: 600 });
      const { statusCode } = await request(`${stack.issuerUrl}/v1/grants/${claimsOf(stack, revoked).jti}`, {
        method: 'DELETE',
        headers: { authorization: `Bearer ${stack.apiKey}` },
      });
      expect(statusCode).toBe(204);
      expect(await call(revoked)).toBe('grant_revoked');
      await stack.issuer.ledger.drainAll();
      // Redis says when a call was settled.
      const rows = await db.select({ at: ledger.settledAt }).from(ledger);
      expect(rows.length).toBeGreaterThanOrEqual(2);
      for (const { at } of rows) expect(Math.abs(at.getTime() - Date.now())).toBeLessThan(600_000);

      await stack.close();
      await providers.close();
      await redis.close();
      await postgres.remove();
    },
  );
});

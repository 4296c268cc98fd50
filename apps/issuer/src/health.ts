import { sql } from 'drizzle-orm';
import type { Hono } from 'hono';
import type { IssuerDeps, IssuerEnv } from './deps.ts';
import { inTime } from './in-time.ts';

/** `/healthz`: the process is alive. `/readyz`: its stores answer; names the one that does not. */
export function health(app: Hono<IssuerEnv>, { db, redis }: IssuerDeps): void {
  app.get('/healthz', (c) => c.json({ status: 'ok' }));
  app.get('/readyz', async (c) => {
    const [postgres, cache] = await Promise.all([
      answers(inTime(db.execute(sql`select 1`), 2_000)),
      answers(redis.ping()),
    ]);
    return c.json({ postgres, redis: cache }, postgres && cache ? 200 : 503);
  });
}

const answers = (asked: PromiseLike<unknown>): PromiseLike<boolean> =>
  asked.then(
    () => true,
    () => false,
  );

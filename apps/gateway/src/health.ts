import type { Hono } from 'hono';
import type { GatewayDeps, GatewayEnv } from './app.ts';

/** `/healthz`: the process is alive. `/readyz`: Redis answers; Postgres is needed only for grants not yet known. */
export function health(app: Hono<GatewayEnv>, { redis }: GatewayDeps): void {
  app.get('/healthz', (c) => c.json({ status: 'ok' }));
  app.get('/readyz', async (c) => {
    const answers = await redis.ping().then(
      () => true,
      () => false,
    );
    return c.json({ redis: answers }, answers ? 200 : 503);
  });
}

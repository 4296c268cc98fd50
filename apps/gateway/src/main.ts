import { setTimeout as sleep } from 'node:timers/promises';
import { connectRedis } from '@presign/limits';
import { awaitStore, causeOf, MALFORMED, parseVariable, STORE_WAIT_MS } from '@presign/service';
import { connectDatabase } from '@presign/service/database';
import { GATHERED, startLog } from '@presign/service/log';
import { serveMetrics } from '@presign/service/metrics';
import { explainStart, requireTables, runProcess } from '@presign/service/start';
import { startTraces } from '@presign/service/traces';
import { sql } from 'drizzle-orm';
import { readGatewayEnv } from './env.ts';
import { startGateway } from './start.ts';
import { callTraces } from './traces.ts';
import { limitHeapsByThread } from './workers/body-workers.ts';

limitHeapsByThread();
// Each decoded chunk of zlib (16 KiB) gets its own memory. In a pool (64 KiB in Node 24.21 and 26) one kept chunk would keep chunks of
// other bodies alive. On Node 24 an attack with stalled bodies took 398 MB, and takes 291 MB with this setting.
Buffer.poolSize = Math.min(Buffer.poolSize, 32 * 1024);

/** env → dependencies → listen → drain and close. It waits for stores that do not answer, and `/readyz` names them. */
runProcess(
  'gateway',
  (port) => (port === readGatewayEnv().metricsPort ? 'METRICS_PORT' : 'GATEWAY_PORT'),
  async () => {
    const env = readGatewayEnv();
    const log = startLog({ name: 'gateway', level: env.logLevel }, GATHERED);
    const { db, close: closeDatabase } = connectDatabase(env.databaseUrl, env.database);
    let lost: unknown;
    const warn = (error: Error) => {
      lost = error;
      log.warn(causeOf(error), 'Redis');
    };
    const connect = () => connectRedis(env.redisUrl, warn, env.redisTimeouts);
    const redis = parseVariable('REDIS_URL', connect, MALFORMED);
    const ping = () => redis.ping().catch((error: unknown) => Promise.reject(lost ?? error));
    const up = awaitStore({ variable: 'REDIS_URL', url: env.redisUrl, ask: ping, log });
    // The gateway starts without Postgres, which it reads only for grants that are not in Redis.
    const select = () => db.execute(sql`select 1`);
    awaitStore({ variable: 'DATABASE_URL', url: env.databaseUrl, ask: select, log })
      .then(() => requireTables(db))
      // URLs in Redis are still served.
      .catch((error: unknown) => log.error(explainStart(error)));
    await Promise.race([up, sleep(STORE_WAIT_MS, undefined, { ref: false })]);
    const metrics = await serveMetrics(env.host, env.metricsPort);
    const { meter } = metrics;
    const spans = await startTraces(env.traceEndpoint, { service: 'presign-gateway', ratio: env.traceRatio });
    const traces = spans && callTraces(spans, env.traceUpstreams);
    const gateway = await startGateway({ ...env, db, redis, meter, traces, now: Date.now, log }, env);
    void up.then(() => log.info({ port: gateway.port, url: env.gatewayUrl }, 'gateway is ready'));
    if (env.hasSigningKey)
      log.warn('TOKEN_SIGNING_KEY is set: a gateway needs the public keys alone, and must not have it');

    return async () => {
      await gateway.close(env.shutdown);
      await metrics.close();
      await spans?.close();
      redis.disconnect();
      await closeDatabase();
    };
  },
);

import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { connectRedis, findRisks } from '@presign/limits';
import { awaitStore, causeOf, MALFORMED, parseVariable, STORE_WAIT_MS } from '@presign/service';
import { connectDatabase, isDatabaseOutage } from '@presign/service/database';
import { GATHERED, startLog } from '@presign/service/log';
import { serveMetrics } from '@presign/service/metrics';
import { requireTables, runProcess } from '@presign/service/start';
import { startTraces } from '@presign/service/traces';
import { sql } from 'drizzle-orm';
import { readIssuerEnv } from './env.ts';
import { bootstrap } from './keys/bootstrap.ts';
import { requestTraces } from './middleware/trace-requests.ts';
import { startIssuer } from './start.ts';

/** A folder that the image has next to the bundled code. */
function built(name: string): string | undefined {
  const folder = fileURLToPath(new URL(name, import.meta.url));
  return existsSync(folder) ? folder : undefined;
}
const consoleDir = built('./console-files');
const clients = built('./client-files');
const clientPackages = clients === undefined ? undefined : { dir: async () => clients, isReleased: true };

/** env → dependencies → listen → drain and close. It waits for stores that do not answer, and `/readyz` names them. */
runProcess(
  'issuer',
  (port) => (port === readIssuerEnv().metricsPort ? 'METRICS_PORT' : 'ISSUER_PORT'),
  async (fail) => {
    const env = readIssuerEnv();
    const log = startLog({ name: 'issuer', level: env.logLevel }, GATHERED);
    const { db, close: closeDatabase } = connectDatabase(env.databaseUrl, env.database);
    let lost: unknown;
    const warn = (error: Error) => {
      lost = error;
      log.warn(causeOf(error), 'Redis');
    };
    const connect = () => connectRedis(env.redisUrl, warn, env.redisTimeouts);
    const redis = parseVariable('REDIS_URL', connect, MALFORMED);
    const ping = () => redis.ping().catch((error: unknown) => Promise.reject(lost ?? error));
    const select = () => db.execute(sql`select 1`);
    const isFinal = (error: unknown) => !isDatabaseOutage(error);
    const up = Promise.all([
      awaitStore({ variable: 'REDIS_URL', url: env.redisUrl, ask: ping, log }),
      awaitStore({ variable: 'DATABASE_URL', url: env.databaseUrl, ask: select, isFinal, log }).then(
        async () => {
          await requireTables(db);
          if (env.bootstrapApiKey !== undefined) await bootstrap(db, env.bootstrapApiKey);
        },
      ),
    ]);
    await Promise.race([up, sleep(STORE_WAIT_MS, undefined, { ref: false })]);
    const metrics = await serveMetrics(env.host, env.metricsPort);
    const { meter } = metrics;
    const spans = await startTraces(env.traceEndpoint, { service: 'presign-issuer', ratio: env.traceRatio });
    const traces = spans && requestTraces(spans);
    const issuer = await startIssuer(
      { ...env, consoleDir, clientPackages, db, redis, meter, traces, now: Date.now, log },
      env,
    );
    up.then(async () => {
      log.info({ port: issuer.port, url: env.issuerUrl }, 'issuer is ready');
      for (const risk of await findRisks(redis).catch(() => [])) log.warn(risk);
    }).catch(fail);

    return async () => {
      await issuer.close(env.shutdown);
      await metrics.close();
      await spans?.close();
      redis.disconnect();
      await closeDatabase();
    };
  },
);

import { connectRedis, redisReady } from '@presign/limits';
import { MALFORMED, parseVariable } from '@presign/schema';
import { connectDatabase } from '@presign/schema/database';
import { pino } from 'pino';
import { bootstrap } from './bootstrap.ts';
import { readIssuerEnv } from './env.ts';
import { explainStart } from './explain-start.ts';
import { startIssuer } from './start.ts';

/** env → dependencies → listen → drain and close. */
async function main(): Promise<void> {
  const env = readIssuerEnv();
  const log = pino({ name: 'issuer', level: env.logLevel });
  const { db, close: closeDatabase } = parseVariable(
    'DATABASE_URL',
    () => connectDatabase(env.databaseUrl),
    MALFORMED,
  );
  const warn = (error: Error) => log.warn({ error: error.message }, 'Redis');
  const redis = parseVariable('REDIS_URL', () => connectRedis(env.redisUrl, warn), MALFORMED);
  await redisReady(redis).catch(() => {
    throw new Error('REDIS_URL: Redis does not answer');
  });
  if (env.bootstrapApiKey !== undefined) await bootstrap(db, env.bootstrapApiKey);
  const issuer = await startIssuer({ ...env, db, redis, now: Date.now, log }, env);
  log.info({ port: issuer.port, url: env.issuerUrl }, 'issuer is ready');

  const stop = async () => {
    await issuer.close();
    redis.disconnect();
    await closeDatabase();
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void stop());
}

main().catch((error: unknown) => {
  process.stderr.write(`presign issuer: ${explainStart(error)}\n`);
  process.exit(1);
});

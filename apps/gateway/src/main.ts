import { connectRedis, redisReady } from '@presign/limits';
import { MALFORMED, parseVariable } from '@presign/schema';
import { connectDatabase } from '@presign/schema/database';
import { pino } from 'pino';
import { readGatewayEnv } from './env.ts';
import { startGateway } from './start.ts';

/** env → dependencies → listen → drain and close. */
async function main(): Promise<void> {
  const env = readGatewayEnv();
  const log = pino({ name: 'gateway', level: env.logLevel });
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
  const gateway = await startGateway({ ...env, db, redis, now: Date.now, log }, env);
  log.info({ port: gateway.port, url: env.gatewayUrl }, 'gateway is ready');

  const stop = async () => {
    await gateway.close();
    redis.disconnect();
    await closeDatabase();
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void stop());
}

main().catch((error: unknown) => {
  process.stderr.write(`presign gateway: ${error instanceof Error ? error.message : 'failed to start'}\n`);
  process.exit(1);
});

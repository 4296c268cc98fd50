import { type RedisHealth, readHealth } from '@presign/limits';
import { knowledgeProblems } from '@presign/providers/keep-knowledge';
import { priceProblems } from '@presign/providers/keep-prices';
import { clockProblems, type Problem, type Readiness, STOPPING } from '@presign/service';
import { probeWrites, type Writes } from '@presign/service/probe-writes';
import type { Hono } from 'hono';
import type { IssuerDeps } from './deps.ts';
import type { IssuerEnv } from './identity/caller.ts';

/** `/healthz`: the process is alive. `/readyz`: whether URLs can be issued, and what this issuer cannot do. */
export function addHealthRoutes(app: Hono<IssuerEnv>, { readiness, draining }: IssuerDeps): void {
  app.get('/healthz', (c) => c.json({ status: 'ok' }));
  app.get('/readyz', async (c) => {
    const { status, problems } = await readiness();
    const report: Readiness = draining.aborted
      ? { status: 'unready', problems: [STOPPING, ...problems] }
      : { status, problems };
    return c.json(report, report.status === 'ready' ? 200 : 503);
  });
}

/** Checks what the issuer cannot do now. A stopping issuer is not checked. */
export function askStores({
  db,
  redis,
  prices,
  knowledge,
  clock,
}: Pick<IssuerDeps, 'db' | 'redis' | 'prices' | 'knowledge' | 'clock'>): () => Promise<Readiness> {
  const tryPostgres = probeWrites(db);
  return async () => {
    const [postgres, { writes }] = await Promise.all([tryPostgres(), readHealth(redis, 0)]);
    const problems = [
      ...(postgres === 'taken' ? [] : [postgresProblem(postgres)]),
      ...(writes === 'taken' ? [] : [redisProblem(writes)]),
      ...priceProblems(prices.status()),
      ...knowledgeProblems(knowledge.status()),
      ...clockProblems(clock.farMs(), 'issuer'),
    ];
    return { status: postgres === 'taken' ? 'ready' : 'unready', problems };
  };
}

const postgresProblem = (writes: Exclude<Writes, 'taken'>): Problem => ({
  store: 'postgres',
  problem: POSTGRES_PROBLEMS[writes],
  effect:
    writes === 'no_answer'
      ? 'Every request gets 503 database_unavailable, and settled calls wait in Redis for the ledger.'
      : 'Nothing is issued, revoked or changed: such requests get 503 database_unavailable. Settled calls wait in Redis for the ledger.',
});

const POSTGRES_PROBLEMS = {
  no_answer: 'does not answer',
  read_only: 'is read-only',
  full: 'has no room on its disk',
  refused: 'takes no writes',
} as const;

/** Issuing needs nothing of Redis. */
const redisProblem = (writes: Exclude<RedisHealth['writes'], 'taken'>): Problem => ({
  store: 'redis',
  problem: REDIS_PROBLEMS[writes],
  effect:
    'URLs are issued. Revocations and changes of virtual keys get 202 and wait, requests are not counted, live figures are null, and settled calls do not reach the ledger.',
});

const REDIS_PROBLEMS = {
  no_answer: 'does not answer',
  read_only: 'is read-only',
  refused: 'takes no writes',
} as const;

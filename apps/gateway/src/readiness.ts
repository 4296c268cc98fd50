import { type RedisHealth, readHealth } from '@presign/limits';
import { knowledgeProblems } from '@presign/providers/keep-knowledge';
import { priceProblems } from '@presign/providers/keep-prices';
import { PARTITIONS } from '@presign/schema';
import { clockProblems, type Problem, type Readiness, STOPPING } from '@presign/service';
import { databaseAnswers } from '@presign/service/database';
import type { Handler, Hono } from 'hono';
import type { GatewayEnv } from './call-deps.ts';
import type { GatewayDeps } from './deps.ts';

/** `/healthz`: the process is alive. `/readyz`: whether calls can pass, and what this gateway cannot do. */
export function addHealthRoutes(
  app: Hono<GatewayEnv>,
  deps: GatewayDeps,
  wrongMethod: Handler<GatewayEnv>,
): void {
  app.get('/healthz', (c) => c.json({ status: 'ok' }));
  app.get('/readyz', async (c) => {
    const report = await deps.readiness();
    const prices = deps.prices.status();
    const { problem, ...knowledge } = deps.knowledge.status();
    const stopping = deps.draining.aborted ? [STOPPING] : [];
    const clock = clockProblems(deps.clock.farMs(), 'gateway');
    const lists = [...priceProblems(prices), ...knowledgeProblems({ ...knowledge, problem })];
    const problems = [...stopping, ...report.problems, ...lists, ...clock];
    const status = stopping.length > 0 ? 'unready' : report.status;
    return c.json({ status, problems, prices: prices.lists, knowledge }, status === 'ready' ? 200 : 503);
  });
  for (const path of ['/healthz', '/readyz']) app.all(path, wrongMethod);
}

/** How long no partition may be open before the gateway is unready: a failover takes a second or two. */
const CLOSED_MS = 5_000;
/** A report is this old at most, so that requests for it cannot load the stores. */
const FRESH_MS = 1_000;

/**
 * Reports what this gateway cannot do. It is unready only while Redis is read-only, or when no partition has been open
 * for five seconds: another gateway could do no more, and a load balancer without backends would hide the reason.
 */
export function askStores({
  db,
  redis,
  now,
}: Pick<GatewayDeps, 'db' | 'redis' | 'now'>): () => Promise<Readiness> {
  let closedSince = Number.NEGATIVE_INFINITY;
  let latest: { readonly at: number; readonly report: Promise<Readiness> } | undefined;
  const look = async (): Promise<Readiness> => {
    const [health, postgres] = await Promise.all([readHealth(redis, PARTITIONS), databaseAnswers(db)]);
    if (health.open > 0) closedSince = Number.POSITIVE_INFINITY;
    else closedSince = Math.min(closedSince, now());
    const isUnready = health.writes === 'read_only' || now() - closedSince >= CLOSED_MS;
    const problems = [...redisProblems(health), ...(postgres ? [] : [NO_POSTGRES])];
    return { status: isUnready ? 'unready' : 'ready', problems };
  };
  return () => {
    if (!latest || now() - latest.at >= FRESH_MS) latest = { at: now(), report: look() };
    return latest.report;
  };
}

const NO_POSTGRES: Problem = {
  store: 'postgres',
  problem: 'does not answer',
  effect: 'URLs that Redis does not know yet get 503 database_unavailable. All others work.',
};

const EVERY_CALL = 'Every call gets 503 limits_unavailable.';

function redisProblems({ writes, open }: RedisHealth): Problem[] {
  if (writes === 'no_answer') return [{ store: 'redis', problem: 'does not answer', effect: EVERY_CALL }];
  if (writes === 'read_only') return [{ store: 'redis', problem: 'is read-only', effect: EVERY_CALL }];
  const full: Problem = { store: 'redis', problem: 'takes no writes', effect: EVERY_CALL };
  const closed: Problem = {
    store: 'redis',
    problem: `${PARTITIONS - open} of ${PARTITIONS} partitions are closed until an issuer has drained them`,
    effect: 'Calls of URLs in these partitions get 503 limits_unavailable.',
  };
  return [...(writes === 'refused' ? [full] : []), ...(open < PARTITIONS ? [closed] : [])];
}

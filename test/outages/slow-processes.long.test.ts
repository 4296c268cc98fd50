import type { ChildProcess } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { ledger } from '@presign/schema/ledger-tables';
import { migrateDatabase } from '@presign/service/database';
import { request } from 'undici';
import { describe, expect, onTestFinished, test } from 'vitest';
import { hasRedisServer, makeRedis } from '../chaos/redis-server.ts';
import { canStrike } from '../chaos/strike-all.ts';
import { startGatewayProcess } from '../harness/gateway-process.ts';
import { startStack } from '../harness/stack.ts';
import { answerChat, startUpstream } from '../harness/upstream.ts';
import { least, send } from '../issuer/ask.ts';
import { startIssuerProcess } from '../issuer/issuer-process.ts';
import { makePostgres } from '../issuer/postgres-server.ts';

/** A slowed process runs this many milliseconds of each tenth of a second. */
const RUNS_MS = 20;

const LEASE_SECONDS = 4;
const USES = 12;

test.skipIf(!hasRedisServer)(
  'a gateway with a fifth of a core answers each call, renews its lease and counts it exactly',
  async () => {
    const redis = await makeRedis();
    onTestFinished(redis.remove);
    // Longer than a lease: it is renewed meanwhile.
    const provider = await startUpstream(async (...call) => {
      await sleep(2_000 * LEASE_SECONDS);
      await answerChat(...call);
    });
    onTestFinished(provider.close);
    const stack = await startStack({
      providers: { openai: { base_url: provider.url } },
      redisUrl: `redis://127.0.0.1:${redis.port}/0`,
      gateway: { leaseMs: 1_000 * LEASE_SECONDS },
    });
    onTestFinished(stack.close);
    const slow = await startGatewayProcess(stack, { HOLD_LEASE_SECONDS: String(LEASE_SECONDS) });
    onTestFinished(slow.kill);
    const { url } = await stack.issue({ ...least, max_uses: USES, cost_limit: 10_000_000 });
    const path = new URL(url).pathname;
    const call = async (origin: string) => {
      const body = JSON.stringify({ model: 'gpt-4o-mini', max_tokens: 10, messages: [] });
      const answer = await request(`${origin}${path}`, { method: 'POST', body });
      await answer.body.dump();
      return answer.statusCode;
    };
    // The process has no database, so the gateway of the stack loads the grant into Redis.
    expect(await call(stack.gatewayUrls[0] ?? '')).toBe(200);

    const atFullSpeed = slowDown(slow.child);
    const statuses = await Promise.all(Array.from({ length: USES + 2 }, () => call(slow.url)));
    await atFullSpeed();
    expect(statuses.filter((status) => status === 200)).toHaveLength(USES - 1);
    // `uses_exhausted`.
    expect(statuses.filter((status) => status === 403)).toHaveLength(3);
    await stack.issuer.ledger.drainAll();
    const rows = await stack.db.select().from(ledger);
    expect(rows.filter(({ outcome }) => outcome === 'settled')).toHaveLength(USES);
    expect(provider.seen).toHaveLength(USES);
  },
);

describe.skipIf(!canStrike || !process.env.TEST_DATABASE_URL)('with its own servers', () => {
  test('an issuer with a fifth of a core issues each URL, and loses none', async () => {
    const postgres = await makePostgres();
    onTestFinished(postgres.remove);
    await migrateDatabase(postgres.url);
    const redis = await makeRedis();
    onTestFinished(redis.remove);
    const issuer = await startIssuerProcess(postgres.url, `redis://127.0.0.1:${redis.port}`);
    onTestFinished(async () => void (await issuer.kill('SIGKILL')));
    const atFullSpeed = slowDown(issuer.child);
    const answers = await Promise.all(Array.from({ length: 40 }, () => send(issuer, { body: least })));
    await atFullSpeed();
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    const ids = new Set(answers.map(({ text }) => (JSON.parse(text) as { session_id: string }).session_id));
    expect(ids.size).toBe(40);
    const listed = await send(issuer, { method: 'GET', path: '/v1/sessions?limit=100' });
    expect((JSON.parse(listed.text) as { data: object[] }).data).toHaveLength(40);
  });
});

/** Lets a process run a part of the time only, until the returned function is called. */
function slowDown(child: ChildProcess): () => Promise<void> {
  let isSlow = true;
  const slowing = (async () => {
    while (isSlow) {
      child.kill('SIGSTOP');
      await sleep(100 - RUNS_MS);
      child.kill('SIGCONT');
      await sleep(RUNS_MS);
    }
  })();
  return async () => {
    isSlow = false;
    await slowing;
  };
}

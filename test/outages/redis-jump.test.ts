import type { ServerResponse } from 'node:http';
import { keys } from '@presign/limits';
import { ledger } from '@presign/schema/ledger-tables';
import { asc, eq } from 'drizzle-orm';
import { request } from 'undici';
import { afterEach, describe, expect, test } from 'vitest';
import { hasRedisServer, makeRedisIn } from '../chaos/redis-server.ts';
import { type Providers, startProviders } from '../gateway/providers.ts';
import { eventually } from '../harness/eventually.ts';
import { startGatewayProcess } from '../harness/gateway-process.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { claimsOf } from '../issuer/ask.ts';
import { grantIn } from '../mcp/holder.ts';
import { hasFakeClock, jumpingClock } from './fake-clock.ts';
import { timeRecovery } from './recovery.ts';

const HOUR = 3_600;
const LEASE_SECONDS = 6;
const PRICE = { input: 1_000_000, output: 4_000_000 };
const BODY = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x' }], max_tokens: 100 });
const USAGE = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
const COST = 30;
const ANSWER = JSON.stringify({ id: '1', model: 'm', choices: [], usage: USAGE });
const answerTo = (response: ServerResponse) => {
  response.writeHead(200, { 'content-type': 'application/json' }).end(ANSWER);
};

describe.skipIf(!hasRedisServer || !hasFakeClock)('under calls, the clock of Redis', () => {
  const closers: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });

  async function start() {
    const clock = jumpingClock();
    closers.push(clock.remove);
    const redis = await makeRedisIn(clock.env);
    closers.push(redis.remove);
    const providers = await startProviders();
    closers.push(providers.close);
    providers.answer = (_seen, response) => answerTo(response);
    const stack = await startStack({
      providers: { openai: { base_url: providers.url, pricing: { m: PRICE } } },
      redisUrl: `redis://127.0.0.1:${redis.port}/0`,
      gateway: { leaseMs: LEASE_SECONDS * 1_000 },
      gateways: 2,
    });
    closers.push(stack.close);
    return { clock, providers, stack };
  }

  const ask = { provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk-real' };
  const post = (url: string) => request(url, { method: 'POST', body: BODY });
  const codeOf = async (url: string) => {
    const { statusCode, headers, body } = await post(url);
    const { error } = (await body.json()) as { error?: { code: string } };
    return { code: error?.code ?? statusCode, wait: Number(headers['retry-after'] ?? 0) };
  };
  const call = async (url: string) => (await codeOf(url)).code;
  const at = ({ gatewayUrls: [first = '', second = ''] }: Stack, url: string) => url.replace(first, second);

  /** A call that the provider has and does not answer. */
  async function startCall(providers: Providers, url: string) {
    const arrived = new Promise<ServerResponse>((resolve) => {
      providers.answer = (_seen, response) => resolve(response);
    });
    const answered = post(url);
    answered.catch(() => {});
    const response = await arrived;
    providers.answer = (_seen, next) => answerTo(next);
    return { answered, response };
  }

  const grantOf = (url: string) => grantIn(new URL(url).pathname.split('/')[3] ?? '');
  const leasesOf = async (stack: Stack, url: string) => {
    const [seconds] = await stack.redis.time();
    const ends = await stack.redis.zrange(keys.leases(grantOf(url).partition), '0', '-1', 'WITHSCORES');
    return ends.filter((_, i) => i % 2 === 1).map((end) => Number(end) / 1_000 - Number(seconds));
  };
  const outcomesOf = async (stack: Stack, url: string) => {
    await stack.issuer.ledger.drainAll();
    const rows = await stack.db
      .select({ outcome: ledger.outcome, cost: ledger.costMicrousd })
      .from(ledger)
      .where(eq(ledger.grantId, grantOf(url).id))
      .orderBy(asc(ledger.costMicrousd));
    return rows.map(({ outcome, cost }) => [outcome, Number(cost)]);
  };

  test.each([
    ['ahead', HOUR],
    ['back', -HOUR],
  ])(
    'jumps %s by an hour: no limit is exceeded, and running calls keep their leases and are charged once',
    async (_way, seconds) => {
      const { clock, providers, stack } = await start();
      const issue = async (limits: object) =>
        (await stack.issue({ ...ask, expires_in: 4 * HOUR, cost_limit: 1_000_000, ...limits })).url;
      const [capped, running, paced] = await Promise.all([
        issue({ max_uses: 60 }),
        issue({ max_uses: 9 }),
        issue({ calls_per_minute: 2 }),
      ]);
      const [short, known] = [await issue({ expires_in: 600 }), await issue({ expires_in: 600 })];
      for (const url of [running, paced, paced, known]) expect(await call(url)).toBe(200);
      const { answered, response } = await startCall(providers, at(stack, running));

      const codes: (string | number)[] = [];
      const lane = async (lane: number) => {
        while (codes.length < 100) {
          codes.push(await call(lane % 2 === 0 ? capped : at(stack, capped)));
          if (codes.length === 30) clock.jump(seconds > 0 ? `+${seconds}` : String(seconds));
        }
      };
      await Promise.all([0, 1, 2, 3].map(lane));
      expect(codes.filter((code) => code === 200)).toHaveLength(60);
      expect(codes.filter((code) => code === 'uses_exhausted')).toHaveLength(codes.length - 60);

      // Leases are counted by the clock of Redis, so the next renewal puts this one right.
      await eventually(async () => {
        const [left] = await leasesOf(stack, running);
        if (left === undefined) throw new Error('a running call lost its lease');
        return left > 0 && left <= LEASE_SECONDS + 1;
      });
      answerTo(response);
      const { statusCode, headers, body } = await answered;
      await body.dump();
      expect([statusCode, headers['x-presign-uses-remaining']]).toEqual([200, '7']);
      expect(await outcomesOf(stack, running)).toEqual([
        ['settled', COST],
        ['settled', COST],
      ]);

      const { code, wait } = await codeOf(paced);
      if (seconds > 0) {
        // An hour fills the bucket, and no more.
        expect([code, await call(paced), await call(paced)]).toEqual([200, 200, 'rate_limited']);
      } else {
        expect(code).toBe('rate_limited');
        expect(wait).toBeLessThanOrEqual(30);
      }
      // Redis opens no URL that has expired by its clock. One that was called before is open.
      expect([await call(short), await call(known)]).toEqual([seconds > 0 ? 'token_expired' : 200, 200]);
      const revoked = await fetch(`${stack.issuerUrl}/v1/grants/${claimsOf(stack, known).jti}`, {
        method: 'DELETE',
        headers: { authorization: `Bearer ${stack.apiKey}` },
      });
      expect([revoked.status, await call(known)]).toEqual([204, 'grant_revoked']);
      clock.jump('+0');
      const recovered = timeRecovery(`Redis: clock jumps back by ${seconds} s`);
      expect(await call(short)).toBe(200);
      recovered();
      expect([await call(known), await call(capped)]).toEqual(['grant_revoked', 'uses_exhausted']);
    },
  );

  test('jumps back: the hold of a gateway that was killed lasts until the clock has caught up', async () => {
    const { clock, providers, stack } = await start();
    const { url } = await stack.issue({ ...ask, expires_in: 4 * HOUR, max_uses: 9, cost_limit: 1_000_000 });
    expect(await call(url)).toBe(200);
    const gateway = await startGatewayProcess(stack, { HOLD_LEASE_SECONDS: String(LEASE_SECONDS) });
    closers.push(gateway.kill);
    await startCall(providers, url.replace(stack.gatewayUrls[0] ?? '', gateway.url));
    await gateway.kill();
    clock.jump(String(-HOUR));
    // Its lease would have ended a renewal after this one began.
    const { answered, response } = await startCall(providers, at(stack, url));
    await eventually(async () => {
      const left = await leasesOf(stack, url);
      expect(left).toHaveLength(2);
      return (left[0] ?? 0) <= LEASE_SECONDS + 1;
    });
    expect((await leasesOf(stack, url))[1]).toBeGreaterThan(HOUR - 600);
    answerTo(response);
    await (await answered).body.dump();
    clock.jump('+0');
    await eventually(async () => (await outcomesOf(stack, url)).some(([outcome]) => outcome === 'expired'));
    expect((await outcomesOf(stack, url)).map(([outcome]) => outcome)).toEqual([
      'settled',
      'settled',
      'expired',
    ]);
  });
});

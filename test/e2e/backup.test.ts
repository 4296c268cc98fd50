import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { keys } from '@presign/limits';
import { ledger } from '@presign/schema/ledger-tables';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { call, providersOf } from '../chaos/load.ts';
import { makeRedis, type RedisServer } from '../chaos/redis-server.ts';
import { grantIdOf, refOf } from '../chaos/sample.ts';
import { canStrike } from '../chaos/strike-all.ts';
import { startWorld, type World } from '../chaos/world.ts';
import { commandsOf, runPrinted, type Shims } from '../docs/printed.ts';
import { eventually } from '../harness/eventually.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { timeRecovery } from '../outages/recovery.ts';

// Makes servers of its own: where servers are to be used at all, and their programs are here.
const wanted = canStrike && Boolean(process.env.TEST_DATABASE_URL);

const COST = 30;
const BODY = { model: 'm', messages: [{ role: 'user', content: 'x' }], max_tokens: 16 };
const ASK = { provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk-1', expires_in: 86_400 };
const FIVE_USES = { ...ASK, max_uses: 5, cost_limit: 1_000_000 };

describe.skipIf(!wanted)('backups, taken and restored with the commands that the guide prints', () => {
  const folder = mkdtempSync(join(tmpdir(), 'presign-backup-'));
  const [backUp = '', restore = '', restoreRedis = ''] = commandsOf('backup.md');
  let upstream: Upstream;
  let world: World;
  /** The Redis of the time of the backup, with the data of that time. */
  let oldRedis: RedisServer;
  /** Two calls before the backup and one after it. */
  let used: string;
  /** Issued before the backup, revoked after it. */
  let revoked: string;
  /** Issued after the backup. */
  let late: string;

  beforeAll(async () => {
    const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
    const answer = JSON.stringify({ id: '1', model: 'm', choices: [], usage });
    upstream = await startUpstream((_seen, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(answer);
    });
    const prices = new Map([['m', { input: 1_000_000, output: 4_000_000 }]]);
    world = await startWorld(providersOf(upstream.url, prices));
    used = await world.issue(FIVE_USES);
    revoked = await world.issue(FIVE_USES);
    expect([await status(used), await status(used), await status(revoked)]).toEqual([200, 200, 200]);
    await inLedger(3);

    run(backUp);
    oldRedis = await redisFromBackup();

    late = await world.issue(FIVE_USES);
    expect([await status(used), await status(late)]).toEqual([200, 200]);
    await revoke(revoked);
    expect(await status(revoked)).toBe(403);
    await inLedger(5);
  });
  afterAll(async () => {
    await world.close();
    await upstream.close();
    rmSync(folder, { recursive: true });
  });

  test('an old Redis with the present Postgres loses nothing: uses, spending and revocations equal the ledger', async () => {
    const before = await epochOf(world.redis, used);
    world.follow(oldRedis);
    const recovered = timeRecovery('Redis: an older backup put back');
    // Until the issuer's next round has seen the other server, the old figures count.
    await eventually(async () => (await epochOf(world.redis, used)) > before);
    await opened(used);
    recovered();
    expect(await figures(used)).toEqual({ used: 3, spent: 3 * COST });
    expect([await status(used), await status(used), await status(used)]).toEqual([200, 200, 403]);
    expect(await figures(used)).toEqual({ used: 5, spent: 5 * COST });
    expect(await status(revoked)).toBe(403);
    expect(await figures(late)).toEqual({ used: 1, spent: COST });
    await inLedger(7);
  });

  test('an old Postgres with an empty Redis is at its backup: later calls, URLs and revocations are lost', async () => {
    const services = [world.issuer, ...world.gateways];
    await Promise.all(services.map((service) => service.kill()));
    const empty = await makeRedis();
    world.adopt(empty.remove);
    world.follow(empty);
    run(restore);
    await Promise.all(services.map((service) => service.start()));
    const recovered = timeRecovery('Postgres: an older backup put back');
    await opened(used);
    recovered();

    expect(await figures(used)).toEqual({ used: 2, spent: 2 * COST });
    const three = [await status(used), await status(used), await status(used)];
    expect([...three, await status(used)]).toEqual([200, 200, 200, 403]);
    expect(await status(late)).toBe(401);
    expect(await status(revoked)).toBe(200);
    await inLedger(7);
  });

  const run = (commands: string, shims?: Shims) => {
    const env = { DATABASE_URL: world.postgres.url, REDIS_URL: `redis://127.0.0.1:${world.master().port}` };
    return runPrinted(commands, folder, env, shims);
  };

  /** A Redis with the data of the snapshot, on a port of its own. */
  async function redisFromBackup(): Promise<RedisServer> {
    const redis = await makeRedis();
    const [, dir] = (await redis.command('CONFIG', 'GET', 'dir')) as [string, string];
    await redis.kill();
    const port = String(redis.port);
    const real = (name: string) => execFileSync('which', [name], { encoding: 'utf8' }).trim();
    const programs = {
      'redis-server': `exec ${real('redis-server')} "$@" --port ${port} --bind 127.0.0.1 --save ''`,
      'redis-cli': `exec ${real('redis-cli')} -p ${port} "$@"`,
    };
    run(restoreRedis.replaceAll('/var/lib/redis', dir), { folder, programs });
    world.adopt(async () => {
      await redis.command('SHUTDOWN', 'NOSAVE').catch(() => {});
      await redis.remove();
    });
    expect(Number(await redis.command('DBSIZE'))).toBeGreaterThan(64);
    await eventually(async () =>
      String(await redis.command('INFO', 'persistence')).includes('aof_rewrite_in_progress:0'),
    );
    return redis;
  }

  const here = (url: string) => url.replace(/^http:\/\/[^/]+/, world.gatewayUrls[1]);
  const status = async (url: string) => (await call(here(url), BODY)).status;

  /** 0 while the partition of a URL is closed or Redis is away. */
  const epochOf = async (redis: World['redis'], url: string) => {
    const { partition } = await refOf(world.db, url);
    const [epoch, state] = await redis.hmget(keys.partition(partition), 'epoch', 'state').catch(() => []);
    return state === 'open' ? Number(epoch) : 0;
  };

  const figures = async (url: string) => {
    const answer = await fetch(here(url).replace(/\/v1\/chat\/completions$/, ''));
    const { used, spent } = (await answer.json()) as { used: number; spent: number };
    return { used, spent };
  };

  /** The issuer opens the partitions of another Redis; until then a gateway refuses. */
  const opened = (url: string) =>
    eventually(async () => {
      const answer = await fetch(here(url).replace(/\/v1\/chat\/completions$/, ''));
      return answer.ok;
    });

  const inLedger = (calls: number) =>
    eventually(async () => {
      const rows = await world.db.select({ holdId: ledger.holdId }).from(ledger);
      if (rows.length > calls) throw new Error(`${rows.length} calls in the ledger, not ${calls}`);
      return rows.length === calls;
    });

  async function revoke(url: string): Promise<void> {
    const jti = grantIdOf(url);
    const headers = { authorization: `Bearer ${world.apiKey}` };
    const answer = await fetch(`${world.issuerUrl}/v1/grants/${jti}`, { method: 'DELETE', headers });
    expect(answer.status).toBe(204);
  }
});

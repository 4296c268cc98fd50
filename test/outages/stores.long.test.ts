import { setTimeout as sleep } from 'node:timers/promises';
import { ledger } from '@presign/schema/ledger-tables';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { freezePostgres } from '../chaos/kill-postgres.ts';
import { call, providersOf } from '../chaos/load.ts';
import { canStrike } from '../chaos/strike-all.ts';
import { startWorld, type World } from '../chaos/world.ts';
import { eventually } from '../harness/eventually.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { timeRecovery } from './recovery.ts';
import { canMount, makeSmallDisk, type SmallDisk } from './small-disk.ts';

// Makes servers and disks of its own: where servers are to be used at all, and it may.
const wanted = canStrike && canMount && Boolean(process.env.TEST_DATABASE_URL);

const BODY = { model: 'm', messages: [{ role: 'user', content: 'x' }], max_tokens: 16 };
const ASK = { provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk-1' };
const USES = 40;

describe.skipIf(!wanted)('an issuer and two gateways, in processes of their own,', () => {
  let disks: { readonly postgres: SmallDisk; readonly redis: SmallDisk };
  let upstream: Upstream;
  let world: World;
  beforeAll(async () => {
    disks = { postgres: makeSmallDisk(160), redis: makeSmallDisk(32) };
    const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
    const answer = JSON.stringify({ id: '1', model: 'm', choices: [], usage });
    upstream = await startUpstream((_seen, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(answer);
    });
    const prices = new Map([['m', { input: 1_000_000, output: 4_000_000 }]]);
    const places = { postgres: disks.postgres.folder, redis: disks.redis.folder };
    world = await startWorld(providersOf(upstream.url, prices), places);
    await world.master().command('CONFIG', 'SET', 'appendfsync', 'everysec');
  });
  afterAll(async () => {
    await world.close();
    await upstream.close();
    for (const disk of Object.values(disks)) disk.remove();
  });

  let url: string;
  /** Calls of this test that were answered with 200. */
  let passed: number;
  beforeEach(async () => {
    url = await world.issue({ ...ASK, max_uses: USES });
    passed = 0;
    // The issuer may not have opened every partition yet.
    await until(200, () => codeOf(0), ['limits_unavailable']);
  });

  const codeOf = async (gateway: number) => {
    const own = url.replace(world.gatewayUrls[0], world.gatewayUrls[gateway % 2] ?? '');
    const { status, code } = await call(own, BODY);
    if (status === 200) passed++;
    return code ?? status;
  };
  const issueCode = async () => {
    const headers = { authorization: `Bearer ${world.apiKey}`, 'content-type': 'application/json' };
    const body = JSON.stringify(ASK);
    const answer = await fetch(`${world.issuerUrl}/v1/presign`, { method: 'POST', headers, body });
    const { error } = (await answer.json()) as { error?: { code: string } };
    return error?.code ?? answer.status;
  };
  /** Until this answer comes. Each answer before it must be one of these. */
  const until = (wanted: unknown, ask: () => Promise<unknown>, before: readonly unknown[]) =>
    eventually(async () => {
      const is = await ask();
      if (is !== wanted) expect(before).toContain(is);
      return is === wanted;
    });
  /** The rest of the uses is there, and not one more, and the ledger has each call once. */
  const nothingLost = async () => {
    for (let i = passed; i < USES; i++) expect(await codeOf(i)).toBe(200);
    for (const i of [0, 1]) expect(await codeOf(i)).toBe('uses_exhausted');
    await eventually(async () => {
      const rows = await world.db.select({ id: ledger.holdId }).from(ledger);
      if (rows.length > upstream.seen.length) throw new Error('the ledger has calls that never ran');
      return rows.length === upstream.seen.length;
    });
  };

  test('while the disk of Redis is full, refuse calls as an outage and issue URLs; nothing is lost', async () => {
    disks.redis.fill();
    await until('limits_unavailable', () => codeOf(0), [200]);
    expect([await codeOf(1), await issueCode()]).toEqual(['limits_unavailable', 200]);
    disks.redis.free();
    const recovered = timeRecovery('Redis: disk is full');
    for (const i of [0, 1]) await until(200, () => codeOf(i), ['limits_unavailable']);
    recovered();
    await nothingLost();
  });

  test('while Redis is slow, let calls pass slowly and exactly as often as they may', async () => {
    world.redisWay.delay(300);
    const codes = await Promise.all(Array.from({ length: 2 * USES }, (_, i) => codeOf(i)));
    expect(passed).toBe(USES);
    expect(new Set(codes)).toEqual(new Set([200, 'uses_exhausted']));
    world.redisWay.delay(0);
    await nothingLost();
  });

  test('while Postgres is slow, issue URLs slowly and let calls pass', async () => {
    world.postgresWay.delay(300);
    expect([await issueCode(), await codeOf(0), await codeOf(1)]).toEqual([200, 200, 200]);
    world.postgresWay.delay(0);
    await nothingLost();
  });

  test('while Postgres is frozen, issue no URL and let calls on known URLs pass; nothing is lost', async () => {
    expect(await codeOf(1)).toBe(200);
    const thaw = await freezePostgres(world.postgres.url);
    expect(await issueCode()).toBe('database_unavailable');
    expect([await codeOf(0), await codeOf(1)]).toEqual([200, 200]);
    thaw();
    const recovered = timeRecovery('Postgres: frozen (SIGSTOP)');
    await until(200, issueCode, ['database_unavailable']);
    recovered();
    await nothingLost();
  });

  test('while the disk of Postgres is full, issue no URL and let calls on known URLs pass; nothing is lost', async () => {
    expect(await codeOf(1)).toBe(200);
    disks.postgres.fill();
    await until('database_unavailable', issueCode, [200]);
    expect([await codeOf(0), await codeOf(1)]).toEqual([200, 200]);
    await sleep(1_000);
    disks.postgres.free();
    // A server that could not write its log has ended.
    await world.postgres.stop();
    await world.postgres.start();
    const recovered = timeRecovery('Postgres: disk is full, after its restart');
    await until(200, issueCode, ['database_unavailable']);
    recovered();
    await nothingLost();
  });
});

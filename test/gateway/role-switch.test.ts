import { connectRedis, findEnds, redisReady } from '@presign/limits';
import { request } from 'undici';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { hasRedisServer, makeRedis, type RedisServer } from '../chaos/redis-server.ts';
import { openTunnel, type Tunnel } from '../chaos/tunnel.ts';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { timeRecovery } from '../outages/recovery.ts';
import { OK, type Providers, startProviders } from './providers.ts';

describe.skipIf(!hasRedisServer)('after a Redis failover to another server at the same address', () => {
  let servers: [RedisServer, RedisServer];
  let address: Tunnel;
  let providers: Providers;
  let stack: Stack;
  beforeAll(async () => {
    servers = [await makeRedis(), await makeRedis('--repl-diskless-sync-delay', '0')];
    address = await openTunnel(servers[0].port);
    providers = await startProviders();
    const redisUrl = `redis://127.0.0.1:${address.port}/0`;
    stack = await startStack({ providers: providers.file, redisUrl, gateways: 2 });
  });
  afterAll(async () => {
    await stack.close();
    address.close();
    await providers.close();
    for (const server of servers) await server.remove();
  });
  beforeEach(() => {
    providers.answer = OK;
  });

  const follow = async (replica: RedisServer, master: RedisServer) => {
    await replica.command('REPLICAOF', '127.0.0.1', String(master.port));
    await eventually(async () =>
      String(await replica.command('INFO', 'replication')).includes('master_link_status:up')
        ? true
        : undefined,
    );
  };
  const offsetOf = async (server: RedisServer) =>
    /^(?:slave|master)_repl_offset:(\d+)/m.exec(String(await server.command('INFO', 'replication')))?.[1];
  /** The replica becomes the master, and every open connection stays with the old one. */
  const switchRoles = async () => {
    const [master, replica] = servers;
    const written = Number(await offsetOf(master));
    await eventually(async () => (Number(await offsetOf(replica)) >= written ? true : undefined));
    await replica.command('REPLICAOF', 'NO', 'ONE');
    await follow(master, replica);
    address.turn(replica.port);
    servers = [replica, master];
  };
  const issue = async (maxUses: number) =>
    (await stack.issue({ provider: 'openai', path: '/v1/x', client_api_key: 'sk-real', max_uses: maxUses }))
      .url;
  const call = async (url: string) => {
    const answer = await request(url, { method: 'POST', body: '{}' });
    const body = (await answer.body.json()) as { error?: { code: string } };
    return body.error?.code ?? answer.statusCode;
  };

  test('calls pass again without a restart, over every gateway, and no limit is exceeded', async () => {
    await follow(servers[1], servers[0]);
    const url = await issue(60);
    const paths = stack.gatewayUrls.map((gateway) => url.replace(stack.gatewayUrls[0] ?? '', gateway));
    for (const path of paths) expect(await call(path)).toBe(200);
    await switchRoles();
    let recovered: (() => void) | undefined = timeRecovery('Redis: role switch behind one address');
    const seen = new Set<unknown>();
    await eventually(async () => {
      const codes = [];
      for (const path of paths) codes.push(await call(path));
      for (const code of codes) seen.add(code);
      if (seen.has('limits_unavailable') && codes.every((code) => code === 200)) {
        recovered?.();
        recovered = undefined;
      }
      return seen.has('uses_exhausted') ? true : undefined;
    });
    expect([...seen].sort()).toEqual([200, 'limits_unavailable', 'uses_exhausted']);
    expect(providers.seen).toHaveLength(60);
    await eventually(() =>
      stack.issuer.ledger.drainAll().then(
        () => true,
        () => undefined,
      ),
    );
    for (const path of paths) expect(await call(path)).toBe('uses_exhausted');
  });

  test('a call in flight is settled once, and its use counts', async () => {
    await follow(servers[1], servers[0]);
    const url = await issue(1);
    providers.answer = async (...seen) => {
      await switchRoles();
      return OK(...seen);
    };
    expect(await call(url)).toBe(200);
    providers.answer = OK;
    const last = await eventually(async () => {
      const is = await call(url);
      return is === 'limits_unavailable' ? undefined : is;
    });
    expect(last).toBe('uses_exhausted');
  });

  test('a connection to a replica that has lost its master moves to the new master', async () => {
    const [master, replica] = servers;
    await replica.command('CONFIG', 'SET', 'replica-serve-stale-data', 'no');
    await replica.command('REPLICAOF', '127.0.0.1', '1');
    const way = await openTunnel(replica.port);
    const redis = connectRedis(`redis://127.0.0.1:${way.port}`, () => {});
    await redisReady(redis);
    const grant = { id: 'a', accountId: 'c', credentialId: 'b' };
    await expect(findEnds(redis, 0, [grant])).rejects.toThrow('MASTERDOWN');
    way.turn(master.port);
    expect(await eventually(() => findEnds(redis, 0, [grant]).catch(() => undefined))).toEqual([]);
    redis.disconnect();
    way.close();
    await replica.command('CONFIG', 'SET', 'replica-serve-stale-data', 'yes');
  });
});

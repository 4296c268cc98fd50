import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { keys } from '@presign/limits';
import { Redis } from 'ioredis';
import { request } from 'undici';
import { afterEach, describe, expect, test } from 'vitest';
import { hasRedisServer, makeRedis, type RedisServer } from '../chaos/redis-server.ts';
import { refOf } from '../chaos/sample.ts';
import { type Providers, startProviders } from '../gateway/providers.ts';
import { eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';
import { removeFolder } from '../harness/remove-folder.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { timeRecovery } from './recovery.ts';

const USES = 400;
/** Calls before the master dies. */
const BEFORE = 100;
const LANES = 8;
/** A replica may be promoted after its master was silent for so long. */
const DOWN_MS = 3_000;

describe.skipIf(!hasRedisServer)('under calls over two gateways, a failover of Redis', () => {
  const closers: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });

  const server = async (...settings: string[]) => {
    const made = await makeRedis('--repl-diskless-sync-delay', '0', ...settings);
    closers.push(made.remove);
    return made;
  };
  const replicates = (replica: RedisServer) =>
    eventually(async () =>
      String(await replica.command('INFO', 'replication')).includes('master_link_status:up'),
    );

  /**
   * Calls one URL from many lanes until its uses are spent, and kills the master on the way. The replica may lack the calls
   * of the last moment; no more than these can be spent again.
   */
  async function failOverUnderCalls(
    name: string,
    redisUrl: string,
    serversOf: (stack: Stack, url: string) => Promise<{ master: RedisServer; replica: RedisServer }>,
  ): Promise<void> {
    const providers: Providers = await startProviders();
    closers.push(providers.close);
    const stack = await startStack({
      providers: providers.file,
      redisUrl,
      gateways: 2,
      redisTimeouts: { connectMs: 2_000, commandMs: 2_000 },
    });
    closers.push(stack.close);
    const ask = { provider: 'openai', path: '/v1/x', client_api_key: 'sk-real', max_uses: USES };
    const { url } = await stack.issue(ask);
    const seen = new Map<unknown, number>();
    let recovered: (() => void) | undefined;
    const lane = async (i: number) => {
      const own = url.replace(stack.gatewayUrls[0] ?? '', stack.gatewayUrls[i % 2] ?? '');
      for (;;) {
        const answer = await request(own, { method: 'POST', body: '{}' });
        const body = (await answer.body.json()) as { error?: { code: string } };
        const is = body.error?.code ?? answer.statusCode;
        seen.set(is, (seen.get(is) ?? 0) + 1);
        if (is === 'uses_exhausted') return;
        if (is === 200 && recovered) {
          recovered();
          recovered = undefined;
        }
        if (is !== 200) await new Promise((resolve) => setTimeout(resolve, 20));
      }
    };
    const lanes = Promise.all(Array.from({ length: LANES }, (_, i) => lane(i)));
    lanes.catch(() => {});
    await eventually(async () => providers.seen.length >= BEFORE);
    const { master, replica } = await serversOf(stack, url);
    const budget = keys.budget(...(await budgetOf(stack, url)));
    const known = await eventually(async () => (await usesKnown(replica, budget)) || undefined);
    await master.kill();
    const printRecovery = timeRecovery(`Redis: failover by ${name}, down after ${DOWN_MS} ms`);
    const refusals = seen.get('limits_unavailable') ?? 0;
    await eventually(async () => (seen.get('limits_unavailable') ?? 0) > refusals + LANES);
    // No call passes now. The replica had these calls before its master died, and may have got more.
    const lost = Math.max(0, providers.seen.length - known);
    recovered = printRecovery;
    await lanes;

    expect([...seen.keys()].sort()).toEqual([200, 'limits_unavailable', 'uses_exhausted']);
    expect(providers.seen.length).toBeLessThanOrEqual(USES + lost);
    expect(providers.seen.length).toBeGreaterThan(USES - LANES);
    await eventually(() =>
      stack.issuer.ledger.drainAll().then(
        () => true,
        () => false,
      ),
    );
  }

  test('by Sentinel needs no restart, and limits are exceeded only by calls that the replica never got', async () => {
    const [master, replica] = [await server(), await server()];
    await replica.command('REPLICAOF', '127.0.0.1', String(master.port));
    await replicates(replica);
    const port = await freePort();
    const folder = mkdtempSync(join(tmpdir(), 'presign-sentinel-'));
    const conf = join(folder, 'sentinel.conf');
    const lines = [
      `port ${port}`,
      'bind 127.0.0.1',
      `dir ${folder}`,
      `sentinel monitor presign 127.0.0.1 ${master.port} 1`,
      `sentinel down-after-milliseconds presign ${DOWN_MS}`,
      'sentinel failover-timeout presign 10000',
    ];
    writeFileSync(conf, `${lines.join('\n')}\n`);
    const sentinel = spawn('redis-server', [conf, '--sentinel'], { stdio: 'ignore' });
    closers.push(async () => {
      const exited = once(sentinel, 'exit');
      sentinel.kill();
      await exited;
      await removeFolder(folder);
    });
    const listReplicas = () =>
      spawnSync('redis-cli', ['-p', String(port), 'SENTINEL', 'replicas', 'presign'], { encoding: 'utf8' })
        .stdout;
    await eventually(async () => listReplicas().includes(String(replica.port)));
    const url = `redis+sentinel://127.0.0.1:${port}/presign`;
    await failOverUnderCalls('Sentinel', url, async () => ({ master, replica }));
  });

  test('of a Cluster needs no restart, and limits are exceeded only by calls that the replica never got', async () => {
    const node = async () => {
      const bus = await freePort();
      const where = ['--cluster-port', String(bus), '--cluster-config-file', 'nodes.conf'];
      return server('--cluster-enabled', 'yes', '--cluster-node-timeout', String(DOWN_MS), ...where);
    };
    const nodes = await Promise.all(Array.from({ length: 6 }, node));
    const addresses = nodes.map(({ port }) => `127.0.0.1:${port}`);
    const create = ['--cluster', 'create', ...addresses, '--cluster-replicas', '1', '--cluster-yes'];
    execFileSync('redis-cli', create, { stdio: 'ignore' });
    const replicasOf = async (master: RedisServer) => {
      const id = String(await master.command('CLUSTER', 'MYID'));
      return String(await master.command('CLUSTER', 'REPLICAS', id));
    };
    // A master learns from the gossip of a node that it is its replica, which may be after the two are linked.
    for (const each of nodes)
      await eventually(async () => {
        const info = String(await each.command('CLUSTER', 'INFO'));
        const role = String(await each.command('INFO', 'replication'));
        const isPaired = role.includes('role:master')
          ? (await replicasOf(each)).includes('@')
          : role.includes('master_link_status:up');
        return info.includes('cluster_state:ok') && isPaired;
      });
    await failOverUnderCalls('Cluster', `redis+cluster://${addresses.join(',')}`, async (stack, url) => {
      const [partition] = await budgetOf(stack, url);
      const slot = String(await nodes[0]?.command('CLUSTER', 'KEYSLOT', keys.partition(partition)));
      for (const master of nodes) {
        const found = await master.command('CLUSTER', 'COUNTKEYSINSLOT', slot);
        const role = String(await master.command('INFO', 'replication'));
        if (found === 0 || !role.includes('role:master')) continue;
        const listed = await replicasOf(master);
        const replica = nodes.find(({ port }) => listed.includes(`:${port}@`));
        if (replica) return { master, replica };
      }
      throw new Error('no master has the slot');
    });
  });
});

/** The uses that a replica knows, which in a Cluster answers only those who say READONLY. */
async function usesKnown({ port }: RedisServer, budget: string): Promise<number> {
  const client = new Redis({ port, host: '127.0.0.1', readOnly: true });
  client.on('error', () => {});
  return Number(await client.hget(budget, 'used').finally(() => client.disconnect()));
}

/** The partition of a URL, and the id of its own budget. */
async function budgetOf(stack: Stack, url: string): Promise<[partition: number, id: string]> {
  const { partition, budgetIds } = await refOf(stack.db, url);
  return [partition, budgetIds[0] ?? ''];
}

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasRedisServer, makeRedis, type RedisServer } from '../chaos/redis-server.ts';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { type HolderSocket, statusOf } from './holder.ts';
import { createsOf, ends, PROTOCOLS, type Served, turn } from './protocols.ts';

const SOCKETS = 50;
const TITLE = 'sockets of $name, as Redis is killed, and starts again without any data';

describe.skipIf(!hasRedisServer).each(PROTOCOLS)(TITLE, (protocol) => {
  let served: Served;
  let redis: RedisServer;
  let stack: Stack;
  beforeAll(async () => {
    served = await protocol.start();
    redis = await makeRedis('--appendonly', 'no');
    stack = await startStack({
      providers: { openai: { base_url: served.provider.url } },
      redisUrl: `redis://127.0.0.1:${redis.port}`,
      redisTimeouts: { connectMs: 500, commandMs: 500 },
      gateway: { socketBounds: { perUrl: SOCKETS } },
    });
  });
  afterAll(async () => {
    await stack.close();
    await redis.remove();
    await served.provider.close();
  });

  const ASK = { ...protocol.asked, client_api_key: 'sk-real' };

  test("running turns end, new ones are refused as unavailable, and the sockets serve again with the ledger's figures", async () => {
    const spent = await protocol.open((await stack.issue({ ...ASK, max_uses: 1 })).url);
    expect(await turn(protocol, spent)).toBe('done');
    await stack.issuer.ledger.drainAll();

    const { url } = await stack.issue({ ...ASK, cost_limit: 4 * SOCKETS * protocol.money });
    const holders = await Promise.all(Array.from({ length: SOCKETS }, () => protocol.open(url)));
    const pending = served.holdBack();
    for (const { send } of holders) send(protocol.create('before'));
    await eventually(async () => pending.length === SOCKETS);
    const begun = createsOf(served).length;

    await redis.kill();
    const refused = await Promise.all(holders.map((holder) => turn(protocol, holder, 'meanwhile')));
    expect(new Set(refused)).toEqual(new Set(['limits_unavailable']));
    expect(await turn(protocol, spent, 'meanwhile')).toBe('limits_unavailable');
    expect(createsOf(served)).toHaveLength(begun);
    for (const end of pending.splice(0, SOCKETS / 2)) end();
    await redis.start();
    for (const end of pending) end();
    served.endAtOnce();
    const before = await Promise.all(holders.map((holder) => ends(protocol, holder, 'before')));
    expect(new Set(before)).toEqual(new Set(['done']));

    const seen = new Set<unknown>();
    const passes = (holder: HolderSocket, wanted: string) =>
      eventually(async () => {
        const code = await turn(protocol, holder, 'after');
        seen.add(code);
        return code === wanted;
      });
    await Promise.all(holders.map((holder) => passes(holder, 'done')));
    await passes(spent, 'uses_exhausted');
    expect([...seen].sort()).toEqual(expect.arrayContaining(['done', 'uses_exhausted']));
    for (const code of seen) expect(['limits_unavailable', 'done', 'uses_exhausted']).toContain(code);
    expect(await spent.closed).toEqual({ code: 4402, reason: 'uses_exhausted' });

    const status = await eventually(async () => {
      const now = await statusOf(url);
      return now.held === 0 ? now : undefined;
    });
    // Turns that were under way in the loss are not billed (ADR 3). All later ones are.
    expect(status.used).toBeGreaterThanOrEqual(SOCKETS);
    for (const { socket } of holders) socket.close();
  });
});

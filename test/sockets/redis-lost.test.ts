import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasRedisServer, makeRedis, type RedisServer } from '../chaos/redis-server.ts';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { CREATE, codeOf, type HolderSocket, openSocket, statusOf } from './holder.ts';
import { eventsOf, type ResponsesProvider, startResponsesProvider } from './responses-provider.ts';

const SOCKETS = 50;
const ASK = { provider: 'openai', path: '/v1/responses', client_api_key: 'sk-real', sockets: true };

describe.skipIf(!hasRedisServer)('a Redis that is killed, and starts again without any data', () => {
  let provider: ResponsesProvider;
  let redis: RedisServer;
  let stack: Stack;
  beforeAll(async () => {
    provider = await startResponsesProvider();
    redis = await makeRedis('--appendonly', 'no');
    stack = await startStack({
      providers: { openai: { base_url: provider.url } },
      redisUrl: `redis://127.0.0.1:${redis.port}`,
      redisTimeouts: { connectMs: 500, commandMs: 500 },
      gateway: { socketBounds: { perUrl: SOCKETS } },
    });
  });
  afterAll(async () => {
    await stack.close();
    await redis.remove();
    await provider.close();
  });

  /** A turn's refusal, or the type of its end. */
  const ended = async (holder: HolderSocket, lane: string) =>
    codeOf(await holder.turn({ ...CREATE, stream_id: lane }));

  test('running turns end, new ones are refused as unavailable, and the sockets serve again with the books of the ledger', async () => {
    const serve = provider.serve;
    const spent = await openSocket((await stack.issue({ ...ASK, max_uses: 1 })).url);
    await spent.turn();
    await stack.issuer.ledger.drainAll();

    const { url } = await stack.issue({ ...ASK, cost_limit: 1_000_000 });
    const holders = await Promise.all(Array.from({ length: SOCKETS }, () => openSocket(url)));
    const ends: (() => void)[] = [];
    provider.serve = (event, { socket }) => {
      const [created, ...rest] = eventsOf(event);
      socket.send(JSON.stringify(created));
      ends.push(() => {
        for (const each of rest) socket.send(JSON.stringify(each));
      });
    };
    for (const { send } of holders) send({ ...CREATE, stream_id: 'before' });
    await eventually(async () => ends.length === SOCKETS);
    const frames = provider.frames().length;

    await redis.kill();
    const refused = await Promise.all(holders.map((holder) => ended(holder, 'meanwhile')));
    expect(new Set(refused)).toEqual(new Set(['limits_unavailable']));
    expect(await ended(spent, 'meanwhile')).toBe('limits_unavailable');
    expect(provider.frames()).toHaveLength(frames);
    for (const end of ends.splice(0, SOCKETS / 2)) end();
    await redis.start();
    for (const end of ends) end();
    provider.serve = serve;
    await Promise.all(
      holders.map((holder) =>
        holder.next(({ type, stream_id }) => type === 'response.completed' && stream_id === 'before'),
      ),
    );

    const seen = new Set<unknown>();
    const passes = (holder: HolderSocket, wanted: string) =>
      eventually(async () => {
        const code = await ended(holder, 'after');
        seen.add(code);
        return code === wanted;
      });
    await Promise.all(holders.map((holder) => passes(holder, 'response.completed')));
    await passes(spent, 'uses_exhausted');
    expect([...seen].sort()).toEqual(expect.arrayContaining(['response.completed', 'uses_exhausted']));
    for (const code of seen)
      expect(['limits_unavailable', 'response.completed', 'uses_exhausted']).toContain(code);
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

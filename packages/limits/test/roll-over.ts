import { keys, type RedisClient } from '../src/index.ts';
import { newWindow, type World } from './world.ts';

/**
 * Ends the present window now, as time would: windows have fixed boundaries, and no test waits for one. Postgres has the next one, and
 * gateways still remember the last one.
 */
export async function rollOver(world: World, redis: RedisClient): Promise<void> {
  const [seconds, micros] = await redis.time();
  const now = Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
  const last = world.windows.at(-1);
  if (!last?.window) return;
  const { revisions } = world.terms.get(last.id) ?? { revisions: [] };
  const { maxUses, costLimitMicrousd, tokenLimit = null } = revisions.at(-1) ?? last;
  Object.assign(last.window, { endsMs: Math.max(now, last.window.startsMs) });
  const next = newWindow({ maxUses, costLimitMicrousd, tokenLimit }, last.window.endsMs ?? now);
  world.windows.push(next);
  world.terms.set(next.id, { revisions: [next], answered: next.revision });
  await keepBounds(world, redis);
}

/** Redis has the boundaries that Postgres has: a snapshot has those of its time. */
export async function keepBounds(world: World, redis: RedisClient): Promise<void> {
  for (const { id, window } of world.windows) {
    const key = keys.budget(world.partition, id);
    if (window && (await redis.hexists(key, 'window')) === 1)
      await redis.hset(key, 'window', `${window.startsMs} ${window.endsMs}`);
  }
}

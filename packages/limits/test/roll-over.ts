import { keys, type RedisClient } from '../src/index.ts';
import { newHistory, newWindow, type World } from './world.ts';

const HOUR_MS = 3_600_000;

/**
 * Ends the present window now, as time would: windows have fixed boundaries, and no test waits for one. Postgres has the next one, and
 * gateways still remember the last one. A deleted budget has no next window.
 */
export async function rollOver(world: World, redis: RedisClient): Promise<void> {
  const now = await timeOf(redis);
  const ending = world.windows[world.present];
  if (!ending?.window) return;
  const isKnown = world.present + 1 < world.windows.length;
  const { revisions = [] } = world.histories.get(ending.id) ?? {};
  const { maxUses, costLimitMicrousd, tokenLimit = null } = revisions.at(-1) ?? ending;
  const boundary = Math.max(now, ending.window.startsMs);
  Object.assign(ending.window, { endsMs: boundary });
  if (isKnown) Object.assign(world.windows[world.present + 1]?.window ?? {}, { startsMs: boundary });
  else if (!world.isDeleted) {
    const next = newWindow({ maxUses, costLimitMicrousd, tokenLimit }, boundary);
    world.windows.push(next);
    world.histories.set(...newHistory(next));
  }
  world.present++;
  await keepBounds(world, redis);
}

/** Puts the clock of Redis back before the last boundary, as a failover to a server with another clock does. */
export async function putClockBack(world: World, redis: RedisClient): Promise<void> {
  const [earlier, present] = [world.windows[world.present - 1], world.windows[world.present]];
  if (!earlier?.window) return;
  const boundary = (await timeOf(redis)) + HOUR_MS;
  Object.assign(earlier.window, { endsMs: boundary });
  if (present?.window) Object.assign(present.window, { startsMs: boundary, endsMs: boundary + HOUR_MS });
  world.present--;
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

async function timeOf(redis: RedisClient): Promise<number> {
  const [seconds, micros] = await redis.time();
  return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
}

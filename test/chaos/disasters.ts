import { setTimeout as sleep } from 'node:timers/promises';
import { makeRedis } from './redis-server.ts';
import { openTunnel } from './tunnel.ts';
import type { World } from './world.ts';

/** What is done to the world while calls are under way. */
export type Disaster = {
  readonly name: string;
  /**
   * Lasts as long as the load does; what it broke stands again when it ends. Where Redis acknowledged writes and
   * lost them, it tells since when (Unix ms): there the stated bound is claimed, not the cap.
   */
  readonly strike: (world: World, until: () => boolean) => Promise<number | undefined>;
};

const PAUSE_MS = 700;

/** Kills and starts again, until it is over. */
async function againAndAgain(until: () => boolean, kill: () => Promise<void>, start: () => Promise<void>) {
  while (!until()) {
    await sleep(PAUSE_MS);
    await kill();
    await sleep(PAUSE_MS / 2);
    await start();
  }
  return undefined;
}

const redisKilled = (appendfsync: string): Disaster => ({
  name: `Redis killed (appendfsync ${appendfsync})`,
  strike: async ({ redisServer }, until) =>
    againAndAgain(until, redisServer.kill, async () => {
      await redisServer.start();
      await redisServer.command('CONFIG', 'SET', 'appendfsync', appendfsync);
    }),
});

export const DISASTERS: readonly Disaster[] = [
  { name: 'none', strike: async () => undefined },
  {
    name: 'gateways killed',
    strike: ({ gateways }, until) => {
      let turn = 0;
      const next = () => gateways[turn % 2 === 0 ? 0 : 1];
      return againAndAgain(
        until,
        () => next().kill(),
        async () => {
          await next().start();
          turn++;
        },
      );
    },
  },
  {
    name: 'issuer killed',
    strike: ({ issuer }, until) => againAndAgain(until, issuer.kill, issuer.start),
  },
  redisKilled('always'),
  redisKilled('everysec'),
  {
    name: 'Postgres killed',
    strike: ({ postgres }, until) => againAndAgain(until, () => postgres.stop('SIGQUIT'), postgres.start),
  },
  { name: 'Redis fails over to a lagging replica', strike: failOver },
];

/** The line to the replica falls silent, calls go on, the master dies, the replica takes over. */
async function failOver({ redisServer, way, adopt }: World): Promise<number> {
  const line = await openTunnel(redisServer.port);
  const replica = await makeRedis('--appendfsync', 'everysec');
  adopt(replica.remove);
  await replica.command('REPLICAOF', '127.0.0.1', String(line.port));
  while (!String(await replica.command('INFO', 'replication')).includes('master_link_status:up')) {
    await sleep(50);
  }
  await sleep(PAUSE_MS);
  const began = Date.now();
  line.silence();
  await sleep(PAUSE_MS / 2);
  await redisServer.kill();
  line.close();
  await replica.command('REPLICAOF', 'NO', 'ONE');
  way.lead(replica.port);
  return began;
}

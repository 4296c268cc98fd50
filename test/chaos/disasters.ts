import { setTimeout as sleep } from 'node:timers/promises';
import { makeRedis } from './redis-server.ts';
import { openTunnel } from './tunnel.ts';
import type { World } from './world.ts';

/** What is done to the world while calls are under way. */
export type Disaster = {
  readonly name: string;
  /** Lasts as long as the load does; what it broke stands again when it ends. */
  readonly strike: (world: World, until: () => boolean) => Promise<void>;
  /** Redis acknowledges writes here and then loses them: the stated bound is claimed, not the cap. */
  readonly loses?: true;
  /** When the loss began, Unix ms. */
  readonly began?: () => number;
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
}

const redisKilled = (appendfsync: string): Disaster => ({
  name: `Redis killed (appendfsync ${appendfsync})`,
  strike: async ({ redisServer }, until) => {
    await againAndAgain(until, redisServer.kill, async () => {
      await redisServer.start();
      await redisServer.command('CONFIG', 'SET', 'appendfsync', appendfsync);
    });
  },
});

let lossBegan = 0;

export const DISASTERS: readonly Disaster[] = [
  { name: 'none', strike: async () => {} },
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
  {
    name: 'Redis fails over to a replica that lags',
    loses: true,
    began: () => lossBegan,
    strike: failOver,
  },
];

/** The line to the replica falls silent, calls go on, the master dies, the replica takes over. */
async function failOver({ redisServer, way }: World): Promise<void> {
  const line = await openTunnel(redisServer.port);
  const replica = await makeRedis('--appendfsync', 'everysec');
  try {
    await replica.command('REPLICAOF', '127.0.0.1', String(line.port));
    while (!String(await replica.command('INFO', 'replication')).includes('master_link_status:up'))
      await sleep(50);
    await sleep(PAUSE_MS);
    lossBegan = Date.now();
    line.silence();
    await sleep(PAUSE_MS / 2);
    await redisServer.kill();
    line.close();
    await replica.command('REPLICAOF', 'NO', 'ONE');
    way.lead(replica.port);
    failedOver.add(replica);
  } catch (error) {
    await replica.remove();
    throw error;
  }
}

/** Replicas that are masters now; they go with the world. */
export const failedOver = new Set<{ readonly remove: () => Promise<void> }>();

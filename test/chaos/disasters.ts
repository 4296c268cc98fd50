import { setTimeout as sleep } from 'node:timers/promises';
import { failOver, failOverSpent } from './fail-over.ts';
import { killPostgres } from './kill-postgres.ts';
import { answered, type Outcome } from './load.ts';
import type { World } from './world.ts';

/** The calls that a disaster meets. */
export type Load = {
  /** Whether it has lasted as long as it was to. */
  readonly over: () => boolean;
  /** The outcomes of its calls so far. */
  readonly outcomes: readonly Outcome[];
};

/** The actions that a disaster took. */
export type Deed = {
  readonly kills: number;
  /**
   * Since when Redis acknowledged writes and lost them (Unix ms), if it did: there the stated bound is claimed, not
   * the cap.
   */
  readonly lostSince?: number;
};

/** Lasts as long as the load does, or the load as long as it; what it broke stands again when it ends. */
export type Strike = (load: Load) => Promise<Deed>;

/** A disaster that strikes while calls are under way. */
export type Disaster = {
  readonly name: string;
  /** Microdollars; without it, what most loads spend near their end. */
  readonly limit?: number;
  /** Prepares the world before the first call. */
  readonly prepare: (world: World) => Promise<Strike>;
};

const PAUSE_MS = 700;
/** Spent in some seconds; several times what all lanes hold at once, which a replica goes on holding. */
const SMALL_LIMIT = 4_000_000;

/** The one in which more than the limit must be spent, or it did not do what it is for. */
export const SPENT_TWICE: Disaster = {
  name: 'Redis fails over, limit spent meanwhile',
  limit: SMALL_LIMIT,
  prepare: failOverSpent,
};

/** Kills and starts again, until it is over. Each time, calls have been answered since the last one, so others are under way. */
async function againAndAgain(
  { over, outcomes }: Load,
  kill: () => Promise<void>,
  start: () => Promise<void>,
) {
  let kills = 0;
  while (!over()) {
    const before = answered(outcomes);
    await sleep(PAUSE_MS);
    while (answered(outcomes) === before && !over()) await sleep(PAUSE_MS / 10);
    await kill();
    kills++;
    await sleep(PAUSE_MS / 2);
    await start();
  }
  return { kills };
}

const redisKilled = (appendfsync: string): Disaster => ({
  name: `Redis killed (appendfsync ${appendfsync})`,
  prepare:
    async ({ master }) =>
    (load) =>
      againAndAgain(load, master().kill, async () => {
        await master().start();
        await master().command('CONFIG', 'SET', 'appendfsync', appendfsync);
      }),
});

const gatewaysKilled: Disaster = {
  name: 'gateways killed',
  prepare:
    async ({ gateways }) =>
    (load) => {
      let turn = 0;
      const next = () => gateways[turn % 2 === 0 ? 0 : 1];
      return againAndAgain(
        load,
        () => next().kill(),
        async () => {
          await next().start();
          turn++;
        },
      );
    },
};

export const DISASTERS: readonly Disaster[] = [
  { name: 'none', prepare: async () => async () => ({ kills: 0 }) },
  gatewaysKilled,
  {
    name: 'issuer killed',
    prepare:
      async ({ issuer }) =>
      (load) =>
        againAndAgain(load, issuer.kill, issuer.start),
  },
  redisKilled('always'),
  redisKilled('everysec'),
  {
    name: 'Postgres killed',
    prepare:
      async ({ postgres }) =>
      (load) =>
        againAndAgain(load, () => killPostgres(postgres.url), postgres.start),
  },
  { name: 'Redis fails over to a lagging replica', prepare: failOver },
  SPENT_TWICE,
];

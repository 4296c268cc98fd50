import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../harness/eventually.ts';
import type { Load, Strike } from './disasters.ts';
import { makeRedis, type RedisServer } from './redis-server.ts';
import { openTunnel } from './tunnel.ts';
import type { World } from './world.ts';

const PAUSE_MS = 700;
/** The longest that spending a limit may take. */
const SPENDING_MS = 60_000;

/** The line to the replica falls silent, calls go on, the master dies, the replica takes over. */
export async function failOver(world: World): Promise<Strike> {
  const replica = await attachReplica(world);
  return async () => {
    await sleep(PAUSE_MS);
    const lostSince = replica.silence();
    await sleep(PAUSE_MS / 2);
    await replica.takeOver();
    return { kills: 1, lostSince };
  };
}

/**
 * The worst that it can do: the limit is spent while writes are being lost. The replica knows nothing of that and lets
 * it be spent again, for who would see the loss, the issuer, is dead, too, until that is done.
 */
export async function failOverSpent(world: World): Promise<Strike> {
  const replica = await attachReplica(world);
  return async ({ outcomes }) => {
    await answered(outcomes, 200);
    await replica.catchUp(); // without the budget, it would be given what the ledger has
    const lostSince = replica.silence();
    await answered(outcomes, 402);
    await world.issuer.kill();
    await replica.takeOver();
    await sleep(PAUSE_MS); // calls that the old master refused have been answered by then
    await answered(outcomes, 402, outcomes.length);
    await world.issuer.start();
    return { kills: 2, lostSince };
  };
}

type Replica = {
  /** Until it has what its master had when asked. */
  readonly catchUp: () => Promise<void>;
  /** Nothing reaches it any more. @returns since when, Unix ms */
  readonly silence: () => number;
  /** Its master dies, and all turn to it. */
  readonly takeOver: () => Promise<void>;
};

async function attachReplica(world: World): Promise<Replica> {
  const master = world.master();
  const line = await openTunnel(master.port);
  world.adopt(async () => line.close());
  const replica = await makeRedis('--appendfsync', 'everysec', '--repl-diskless-sync-delay', '0');
  world.adopt(replica.remove);
  await replica.command('REPLICAOF', '127.0.0.1', String(line.port));
  const linked = async () => (await replicationOf(replica)).includes('master_link_status:up');
  await eventually(async () => (await linked()) || undefined);
  const catchUp = async () => {
    const wanted = offsetIn(await replicationOf(master));
    await eventually(async () => offsetIn(await replicationOf(replica)) >= wanted || undefined);
  };
  const silence = () => {
    line.silence();
    return Date.now();
  };
  const takeOver = async () => {
    await master.kill();
    line.close();
    await replica.command('REPLICAOF', 'NO', 'ONE');
    world.follow(replica);
  };
  return { catchUp, silence, takeOver };
}

const replicationOf = async (server: RedisServer) => String(await server.command('INFO', 'replication'));

/** Bytes of the replication stream: those that a master has written, or a replica has read. */
const offsetIn = (told: string) => Number(/^(?:slave|master)_repl_offset:(\d+)/m.exec(told)?.[1]);

/** Until a call was answered so, among those after the first `from`. */
const answered = (outcomes: Load['outcomes'], wanted: number, from = 0) =>
  eventually(
    async () => outcomes.slice(from).some(({ status }) => status === wanted) || undefined,
    SPENDING_MS,
  );
